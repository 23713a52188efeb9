use baton_model::{Fault, code};

/// Why there is no prompt. Values are never repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("This is no reference to a prompt: {0}. Write `prompt:<id>@<version>`.")]
    RefInvalid(String),
    #[error("There is no template for `{0}` here. Check its id and version, or install the pack that has it.")]
    Missing(String),
    #[error("`{reference}` is in several libraries: {}. Say which with `libraryId`.", .libraries.join(", "))]
    Ambiguous { reference: String, libraries: Vec<String> },
    #[error("`{variable}` of `{template}` has no value, and the template cannot do without.")]
    Unresolved { template: String, variable: String },
    #[error("`{variable}` of `{template}` is to be a {wanted}, and its value is a {is}.")]
    TypeMismatch { template: String, variable: String, wanted: &'static str, is: &'static str },
    #[error("`{template}` would be longer than {limit} bytes with its values filled in.")]
    TooLong { template: String, limit: usize },
}

impl PromptError {
    pub const fn code(&self) -> &'static str {
        match self {
            Self::RefInvalid(_) | Self::Missing(_) => code::PROMPT_REF_INVALID,
            Self::Ambiguous { .. } => code::PROMPT_REF_AMBIGUOUS,
            Self::Unresolved { .. } => code::PROMPT_VARIABLE_UNRESOLVED,
            Self::TypeMismatch { .. } => code::PROMPT_VARIABLE_TYPE_MISMATCH,
            Self::TooLong { .. } => code::PAYLOAD_TOO_LARGE,
        }
    }

    /// Nothing is wrong with the reference; what it names is not here.
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }
}

impl From<PromptError> for Fault {
    fn from(error: PromptError) -> Self {
        let fault = Self::new(error.code(), error.to_string());
        match error {
            PromptError::Unresolved { template, variable } => {
                fault.with("template", template).with("variable", variable)
            }
            PromptError::TypeMismatch { template, variable, wanted, .. } => {
                fault.with("template", template).with("variable", variable).with("type", wanted)
            }
            PromptError::Ambiguous { libraries, .. } => fault.with("libraries", libraries),
            _ => fault,
        }
    }
}
