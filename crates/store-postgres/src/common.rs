//! What all hosts have in common: things that are made once and are the same for everybody, and who the hosts are.

use baton_store::Error;

use crate::error::unavailable;
use crate::rows;
use crate::store::PostgresStore;
use crate::text::written;

impl PostgresStore {
    /// Something that is made once and then is the same for every host: what was first proposed under this name.
    pub async fn common(&self, name: &str, proposed: &[u8]) -> Result<Vec<u8>, Error> {
        let keep = "INSERT INTO common (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        self.questions.ask(keep, &[&written(name), &proposed]).await?;
        let kept = self.find_common(name).await?;
        kept.ok_or_else(|| unavailable(format!("what all hosts share as {name} was not kept")))
    }

    pub async fn find_common(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.questions.one("SELECT value FROM common WHERE name = $1", &[&written(name)], rows::raw).await
    }

    /// Hosts that are using the database now, by name.
    pub async fn hosts(&self) -> Result<Vec<String>, Error> {
        let sql = "SELECT host FROM sessions WHERE NOT ended AND lease_until > now() ORDER BY epoch";
        self.questions.list(sql, &[], |row| rows::fields(row, |row| row.text("host"))).await
    }
}
