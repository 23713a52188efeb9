//! Nothing that others wrote reaches a model outside of a fence. A marker that tries to end its fence is planted at every
//! way in, and the bytes that arrive at the vendor are looked at: each marker must lie inside marks that say where it is
//! from, and none of it may pass for a mark.

mod entrances;
mod fences;
mod plant;
mod vendor;
mod world;

use fences::{fence_around, inspect};
use vendor::Vendor;

#[tokio::test]
async fn nothing_that_others_wrote_leaves_its_fence_on_the_way_to_a_vendor() {
    let vendor = Vendor::default();
    let site = world::site(&vendor).await;
    plant::given(&site).await;
    plant::spoken(&site).await;
    plant::ledgers(&site).await;
    plant::nodes(&site).await;
    plant::family(&site).await;
    plant::people(&site).await;
    plant::tools(&site).await;
    plant::prompts(&site).await;
    plant::supervisors(&site).await;
    plant::models(&site).await;
    inspect(&vendor.said(), &entrances::expected());
    // What the workflow itself says is nobody's to doubt.
    let own = vendor.said().into_iter().filter(|body| body.contains("Work on it.")).collect::<Vec<_>>();
    let fenced = |body: &String| body.find("Work on it.").and_then(|at| fence_around(body, at)).is_some();
    assert!(!own.is_empty() && !own.iter().any(fenced), "{own:?}");
}
