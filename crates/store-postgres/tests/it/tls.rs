//! TLS as `sslmode` says.

use baton_store::HealthReads as _;
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::Cluster;

#[tokio::test]
async fn only_who_is_asked_to_verify_does() {
    let Some(cluster) = Cluster::start().await else { return };
    let Some(authority) = cluster.enable_tls() else { return };
    let plain = cluster.database().await;
    let named = plain.replace("127.0.0.1", "localhost");
    let roots = format!("&sslrootcert={}", authority.display());
    let open = async |url: &str, query: String| {
        let store = PostgresStore::open(&Settings::new(format!("{url}?{query}"))).await?;
        store.ping().await
    };
    for mode in ["disable", "prefer", "require"] {
        open(&plain, format!("sslmode={mode}")).await.unwrap();
    }
    open(&named, format!("sslmode=verify-full{roots}")).await.unwrap();
    open(&plain, format!("sslmode=verify-ca{roots}")).await.unwrap();
    let another_name = open(&plain, format!("sslmode=verify-full{roots}")).await.unwrap_err();
    assert!(another_name.to_string().contains("check sslmode"), "{another_name}");
    let unknown = open(&named, "sslmode=verify-full".to_owned()).await.unwrap_err();
    assert!(unknown.to_string().contains("certificate"), "{unknown}");
    let missing = open(&named, "sslmode=verify-full&sslrootcert=/nowhere.pem".to_owned()).await.unwrap_err();
    assert!(missing.to_string().contains("/nowhere.pem"), "{missing}");
}
