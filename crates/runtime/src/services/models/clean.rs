//! What a model said, without anything that must not be stored. A model that has seen no secret says none; one that was
//! told by a tool or a user may, and not only in its text: it makes up names of tools, and a server reports what it likes
//! as the name of its model.

use baton_model::{ModelReply, Secret, ToolUse, redact, redact_value};

/// Every text of an answer is looked at. The fields are all named, so that none that comes later is forgotten.
pub(super) fn clean(reply: ModelReply, secrets: &[Secret]) -> ModelReply {
    if secrets.is_empty() {
        return reply;
    }
    let text = |text: String| redact(&text, secrets);
    let tool = |ToolUse { id, name, arguments }: ToolUse| ToolUse {
        id: text(id),
        name: text(name),
        arguments: redact_value(&arguments, secrets),
    };
    let ModelReply { content, stop, tools, reasoning, echo, refusal, safety_category, model, usage } = reply;
    ModelReply {
        content: text(content),
        stop,
        tools: tools.into_iter().map(tool).collect(),
        reasoning: reasoning.map(text),
        echo: echo.map(|echo| redact_value(&echo, secrets)),
        refusal: refusal.map(text),
        safety_category: safety_category.map(text),
        model: model.map(text),
        usage,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use baton_model::{StopReason, Usage};
    use serde_json::json;

    use super::*;

    #[test]
    fn no_field_of_an_answer_keeps_a_secret() {
        let secret = "sk-live-1234";
        let said = |place: &str| format!("{place} {secret}");
        let tool =
            ToolUse { id: said("id"), name: secret.to_owned(), arguments: json!({ (said("key")): [said("value")] }) };
        let reply = ModelReply {
            content: said("content"),
            stop: StopReason::ToolUse,
            tools: vec![tool],
            reasoning: Some(said("reasoning")),
            echo: Some(json!([{"signed": said("echo")}])),
            refusal: Some(said("refusal")),
            safety_category: Some(said("category")),
            model: Some(format!("m-{secret}")),
            usage: Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() },
        };
        let dirty = serde_json::to_string(&reply).unwrap();
        let cleaned = clean(reply.clone(), &[Secret::new("key", secret)]);
        let shown = serde_json::to_string(&cleaned).unwrap();
        assert!(!shown.contains(secret), "{shown}");
        assert_eq!(shown.matches("[REDACTED:key]").count(), dirty.matches(secret).count());
        assert_eq!(
            (cleaned.tools[0].name.as_str(), cleaned.model.as_deref()),
            ("[REDACTED:key]", Some("m-[REDACTED:key]"))
        );
        assert_eq!((cleaned.stop, cleaned.usage), (reply.stop, reply.usage));
        assert_eq!(clean(reply.clone(), &[]), reply);
    }
}
