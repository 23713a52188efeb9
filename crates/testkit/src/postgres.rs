//! A PostgreSQL of the tests' own: `TEST_DATABASE_URL` if it is set, otherwise a private cluster made with `initdb`.
//!
//! A private cluster lives in a temporary folder and ends with the process that made it, however that ends: a small
//! shell waits on a pipe that only this process holds, stops the server when the pipe breaks, and removes the folder.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::OnceCell;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// How often a port is tried: between finding a free one and using it, somebody else may take it.
const PORTS: usize = 5;
const USER: &str = "baton";
/// Of the role that must give a password; see [`Database::guarded_url`].
const PASSWORD: &str = "let me in";

/// An empty database for one test.
#[derive(Debug)]
pub struct Database {
    pub url: String,
    name: String,
    cluster: Option<&'static Cluster>,
}

impl Database {
    /// A fresh database on the cluster that all tests of this process share. `None`, and a line that says so, where
    /// there is no PostgreSQL: the test is then skipped.
    pub async fn fresh() -> Option<Self> {
        static SHARED: OnceCell<Option<Cluster>> = OnceCell::const_new();
        if let Ok(url) = std::env::var("TEST_DATABASE_URL") {
            return Some(Self::create(&url, None).await);
        }
        let cluster = SHARED.get_or_init(async || Cluster::start().await).await.as_ref()?;
        Some(Self::create(&cluster.url("postgres"), Some(cluster)).await)
    }

    /// [`Self::fresh`] for tests without a runtime.
    pub fn fresh_blocking() -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Self::fresh())
    }

    async fn create(url: &str, cluster: Option<&'static Cluster>) -> Self {
        let name = fresh_name();
        execute(url, &format!("CREATE DATABASE {name}")).await;
        Self { url: with_database(url, &name), name, cluster }
    }

    /// The same database for a role that must give this password; only on a private cluster.
    pub async fn guarded_url(&self, password: &str) -> Option<String> {
        let cluster = self.cluster?;
        let role = format!("{}_guarded", self.name);
        execute(&self.url, &format!("CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{PASSWORD}' IN ROLE guarded")).await;
        let password = password.replace(' ', "%20");
        Some(format!("postgres://{role}:{password}@127.0.0.1:{}/{}", cluster.port, self.name))
    }

    /// The password that [`Self::guarded_url`] wants.
    pub fn password() -> &'static str {
        PASSWORD
    }

    /// Runs statements in this database, on a connection of its own.
    pub async fn execute(&self, sql: &str) {
        execute(&self.url, sql).await;
    }
}

fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("baton_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// `postgres://user@host:port/other?query` with another database in it.
fn with_database(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, ""), |(address, query)| (address, query));
    let authority = address.find("://").map_or(0, |scheme| scheme + 3);
    let end = address[authority..].find('/').map_or(address.len(), |slash| authority + slash);
    let mark = if query.is_empty() { "" } else { "?" };
    format!("{}/{name}{mark}{query}", &address[..end])
}

async fn execute(url: &str, sql: &str) {
    let config: Config = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    let (client, connection) =
        config.connect(NoTls).await.unwrap_or_else(|error| panic!("no connection to {url}: {error:?}"));
    let connection = tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    drop(client);
    let _ = connection.await;
}

/// What a question is answered with, every value as text; what is not there is empty.
pub async fn rows(url: &str, sql: &str) -> Vec<Vec<String>> {
    let config: Config = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    let (client, connection) =
        config.connect(NoTls).await.unwrap_or_else(|error| panic!("no connection to {url}: {error:?}"));
    let connection = tokio::spawn(connection);
    let answer = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    drop(client);
    let _ = connection.await;
    let text = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect())
        }
        _ => None,
    };
    answer.iter().filter_map(text).collect()
}

/// A private server. Tests that stop and start it have one of their own; the others share one.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    bin: PathBuf,
    user: Option<Unprivileged>,
    port: u16,
    /// Ends the server when it is dropped, and with this process at the latest: its standard input is the pipe.
    watchdog: Child,
}

/// Who runs the server when we are root, which it refuses to be.
#[derive(Clone, Copy, Debug)]
struct Unprivileged {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// `None`, and a line that says so, where there is no `initdb`.
    pub async fn start() -> Option<Self> {
        Self::start_in(&std::env::temp_dir()).await
    }

    /// The same, with its files below this folder, into which everybody must be able to look.
    pub async fn start_in(parent: &Path) -> Option<Self> {
        let Some(bin) = find_binaries() else {
            skipped("neither TEST_DATABASE_URL nor initdb was found (Debian: apt-get install postgresql)");
            return None;
        };
        let root = id(&["-u"]) == Some(0);
        let user = root.then(unprivileged).flatten();
        if root && user.is_none() {
            skipped("initdb must not run as root, and setpriv or an unprivileged user was not found");
            return None;
        }
        let mut cluster = Self::empty(parent, bin, user);
        cluster.initialise();
        cluster.start_somewhere();
        execute(&cluster.url("postgres"), "CREATE ROLE guarded").await;
        Some(cluster)
    }

    fn empty(parent: &Path, bin: PathBuf, user: Option<Unprivileged>) -> Self {
        let dir = parent.join(format!("baton-pg-{}-{}", std::process::id(), fresh_name()));
        std::fs::create_dir_all(&dir).unwrap();
        let dir = dir.canonicalize().unwrap();
        if let Some(user) = user {
            std::os::unix::fs::chown(&dir, Some(user.uid), Some(user.gid)).unwrap();
        }
        let watchdog = watch(&bin, &dir, user);
        Self { dir, bin, user, port: 0, watchdog }
    }

    fn start_somewhere(&mut self) {
        for attempt in 1..=PORTS {
            self.port = free_port();
            if self.start_server() {
                return;
            }
            assert!(attempt < PORTS, "the server does not start:\n{}", self.log());
        }
    }

    /// A copy of this server that follows it. From here on nothing is acknowledged by this server that the copy does not
    /// have, so the copy may take over at any moment.
    pub async fn standby(&self) -> Self {
        let parent = self.dir.parent().unwrap_or(Path::new("/"));
        let mut standby = Self::empty(parent, self.bin.clone(), self.user);
        let mut copy = self.command("pg_basebackup");
        copy.args(["-h", "127.0.0.1", "-U", USER, "-c", "fast", "-X", "stream", "-R", "-p", &self.port.to_string()]);
        assert!(quiet(copy.arg("-D").arg(standby.dir.join("data"))), "no copy was made:\n{}", self.log());
        standby.start_somewhere();
        let here = self.url("postgres");
        execute(&here, "ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        execute(&here, "SELECT pg_reload_conf()").await;
        let following = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
        for _ in 0..1000 {
            if !rows(&here, following).await.is_empty() {
                // Waits for the copy, and for everything before it.
                execute(&here, "CREATE TABLE IF NOT EXISTS followed (x INT)").await;
                return standby;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the copy does not follow:\n{}", standby.log());
    }

    /// Makes a standby a server of its own.
    pub fn promote(&self) {
        let mut promote = self.command("pg_ctl");
        promote.args(["promote", "-w", "-D"]).arg(self.dir.join("data"));
        assert!(quiet(&mut promote), "the standby is not promoted:\n{}", self.log());
    }

    /// A program of the same installation, to be run as whoever runs the server.
    pub fn program(&self, name: &str) -> Command {
        self.command(name)
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A fresh database on this cluster, and its URL.
    pub async fn database(&self) -> String {
        let name = fresh_name();
        execute(&self.url("postgres"), &format!("CREATE DATABASE {name}")).await;
        self.url(&name)
    }

    /// Gives the server a certificate for `localhost` and says where the one is that vouches for it. `None`, and a line
    /// that says so, where there is no `openssl`.
    pub fn enable_tls(&self) -> Option<PathBuf> {
        const MAKE: &str = "set -e; umask 077; cd \"$1\"; \
            openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt; \
            openssl req -new -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr; \
            echo subjectAltName=DNS:localhost > names; \
            openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names \
                -out server.crt; \
            printf \"ssl = on\\nssl_cert_file = '%s/server.crt'\\nssl_key_file = '%s/server.key'\\n\" \"$1\" \"$1\" \
                >> data/postgresql.conf";
        let mut shell = unprivileged_command(self.user, Path::new("sh"));
        if !quiet(shell.args(["-c", MAKE, "sh"]).arg(&self.dir)) {
            skipped("openssl made no certificate");
            return None;
        }
        self.stop(false);
        self.start_again();
        Some(self.dir.join("ca.crt"))
    }

    /// Stops the server: as after a loss of power if `crash`, otherwise politely.
    pub fn stop(&self, crash: bool) {
        let mode = if crash { "immediate" } else { "fast" };
        let mut stop = self.command("pg_ctl");
        stop.args(["stop", "-w", "-m", mode, "-D"]).arg(self.dir.join("data"));
        assert!(quiet(&mut stop), "the server does not stop:\n{}", self.log());
    }

    /// Starts it again after [`Self::stop`], at the same address.
    pub fn start_again(&self) {
        assert!(self.start_server(), "the server does not start:\n{}", self.log());
    }

    fn start_server(&self) -> bool {
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={} -c max_connections=200 \
             -c track_commit_timestamp=on -c wal_retrieve_retry_interval=200ms",
            self.port,
            self.dir.display()
        );
        let mut start = self.command("pg_ctl");
        start.args(["start", "-w", "-D"]).arg(self.dir.join("data")).arg("-l").arg(self.dir.join("log"));
        quiet(start.args(["-o", &options]))
    }

    fn initialise(&self) {
        let mut initdb = self.command("initdb");
        initdb.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--pgdata"]);
        let output = initdb.arg(self.dir.join("data")).output().unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        // Members of one group must give a password, so that tests can give a wrong one.
        let access = "host all +guarded 127.0.0.1/32 scram-sha-256\n\
                      host all all 127.0.0.1/32 trust\nlocal all all trust\n\
                      host replication all 127.0.0.1/32 trust\n";
        std::fs::write(self.dir.join("data/pg_hba.conf"), access).unwrap();
    }

    fn command(&self, program: &str) -> Command {
        unprivileged_command(self.user, &self.bin.join(program))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Breaks the pipe; the watchdog does the rest.
        drop(self.watchdog.stdin.take());
        let _ = self.watchdog.wait();
    }
}

#[expect(clippy::print_stderr, reason = "a test that does nothing must say so")]
fn skipped(why: &str) {
    eprintln!("skipped, this test needs PostgreSQL: {why}");
}

fn watch(bin: &Path, dir: &Path, user: Option<Unprivileged>) -> Child {
    let script = "cat > /dev/null; \"$1/pg_ctl\" stop -m immediate -D \"$2/data\" > /dev/null 2>&1; rm -rf \"$2\"";
    let mut shell = unprivileged_command(user, Path::new("sh"));
    shell.args(["-c", script, "sh"]).arg(bin).arg(dir);
    // In a group of its own: what kills the tests' group must not kill the one who cleans up after them.
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn unprivileged_command(user: Option<Unprivileged>, program: &Path) -> Command {
    let mut command = match user {
        None => Command::new(program),
        Some(Unprivileged { uid, gid }) => {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}")).arg("--clear-groups").arg(program);
            command
        }
    };
    command.current_dir("/").env_remove("PGDATA");
    command
}

fn quiet(command: &mut Command) -> bool {
    // Not `output`: the server would keep the pipe open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn unprivileged() -> Option<Unprivileged> {
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok_and(|output| output.status.success());
    let user = |name| Some(Unprivileged { uid: id(&["-u", name])?, gid: id(&["-g", name])? });
    ["postgres", "nobody"].into_iter().find_map(user).filter(|_| has_setpriv)
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// The folder with `initdb` and `pg_ctl`: on the path, or where Debian puts the newest.
fn find_binaries() -> Option<PathBuf> {
    let complete = |dir: &PathBuf| dir.join("initdb").exists() && dir.join("pg_ctl").exists();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(dir) = std::env::split_paths(&path).find(complete) {
        // Behind a link, so that the programs find their own files.
        let program = dir.join("initdb").canonicalize().ok()?;
        return program.parent().map(Path::to_path_buf).filter(complete);
    }
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<PathBuf> = installed.flatten().map(|entry| entry.path().join("bin")).collect();
    versions.retain(complete);
    versions.sort_by_key(|bin| {
        let version = bin.parent().and_then(Path::file_name).and_then(|name| name.to_str()?.parse::<u32>().ok());
        version.unwrap_or(0)
    });
    versions.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced() {
        assert_eq!(with_database("postgres://u:p@h:1/x?sslmode=disable", "y"), "postgres://u:p@h:1/y?sslmode=disable");
        assert_eq!(with_database("postgres://h", "y"), "postgres://h/y");
    }

    #[tokio::test]
    async fn a_cluster_starts_stops_and_leaves_nothing_behind() {
        let Some(cluster) = Cluster::start().await else { return };
        let url = cluster.database().await;
        execute(&url, "CREATE TABLE t (x INT)").await;
        cluster.stop(true);
        cluster.start_again();
        execute(&url, "INSERT INTO t VALUES (1)").await;
        let dir = cluster.dir.clone();
        assert!(dir.exists());
        drop(cluster);
        assert!(!dir.exists());
    }
}
