//! Files that are not what was written.

mod campaign;
mod note;
mod records;
mod served;
