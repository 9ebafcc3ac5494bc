//! Registering and choosing backends, and the tiers of a store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use memgrove::backend::Capabilities;
use memgrove::backends::Ram;
use memgrove::clock::{Clock, ManualClock, Timestamp};
use memgrove::registry::{Clobber, DEFAULT_PROTOCOL, OpenRequest, Registration, Registry};
use memgrove::tier::{DerivedMaintenance, Tier, TierLayout};
use memgrove::{Error, Kind, Locator, Result, Store};

fn registration(about: &'static str, capabilities: Capabilities) -> Registration {
    Registration { open: |request| Ok(Arc::new(Ram::new(Arc::clone(&request.clock)))), capabilities, about }
}

fn plain(about: &'static str) -> Registration {
    registration(about, Capabilities::default())
}

fn at(key: &str) -> Locator {
    Locator::new(key).expect("a valid key")
}

#[test]
fn a_bad_registration_fails_loudly() {
    let mut registry = Registry::new();
    for name in ["", " ", "Vault", "a b", "a/b", "a_b", "ä", "vault\n"] {
        let error = registry.register(name, plain("bad"), Clobber::Refuse).expect_err(name);
        assert_eq!(error.kind(), Kind::Invalid, "{name:?}");
        assert_eq!(error.message(), format!("`{name}` cannot name a protocol"));
        assert_eq!(error.hint_text(), Some("use lower-case letters, digits and `-`"));
    }
    assert_eq!(registry.protocols(), Vec::<&str>::new());
}

#[test]
fn a_duplicate_is_refused_unless_it_is_meant() {
    let mut registry = Registry::new();
    registry.register("vault", plain("first"), Clobber::Refuse).expect("a new name");
    let error = registry.register("vault", plain("second"), Clobber::Refuse).expect_err("taken");
    assert_eq!(error.kind(), Kind::Exists);
    assert_eq!(error.message(), "the protocol `vault` is registered already");
    assert_eq!(registry.get("vault").map(|known| known.about), Some("first"));
    registry.register("vault", plain("third"), Clobber::Replace).expect("it is meant");
    assert_eq!(registry.get("vault").map(|known| known.about), Some("third"));
    registry.register("new", plain("new"), Clobber::Replace).expect("nothing to replace is no error");
}

#[test]
fn a_miss_is_absence_and_no_error() {
    let registry = Registry::standard();
    assert!(registry.get("nowhere").is_none());
    assert!(!registry.contains("nowhere"));
    assert!(registry.get("").is_none());
    assert!(registry.contains("ram") && registry.get("ram").is_some());
}

#[test]
fn registries_are_independent() {
    let mut one = Registry::new();
    let other = Registry::new();
    one.register("mine", plain("mine"), Clobber::Refuse).expect("a new name");
    assert!(one.contains("mine") && !other.contains("mine") && !Registry::standard().contains("mine"));
    let mut copy = one.clone();
    copy.register("copied", plain("copied"), Clobber::Refuse).expect("a new name");
    assert!(!one.contains("copied"));
}

#[test]
fn protocols_are_sorted() {
    let mut registry = Registry::new();
    for name in ["vault", "device-local", "s3", "a1"] {
        registry.register(name, plain(name), Clobber::Refuse).expect("a new name");
    }
    assert_eq!(registry.protocols(), ["a1", "device-local", "s3", "vault"]);
    assert!(Registry::standard().protocols().is_sorted());
}

#[test]
fn the_explicit_name_wins_then_the_configured_one_then_the_default() {
    let mut registry = Registry::new();
    for name in ["one", "two", DEFAULT_PROTOCOL] {
        registry.register(name, plain(name), Clobber::Refuse).expect("a new name");
    }
    let chosen =
        |explicit, configured| registry.select(explicit, configured, &[]).expect("it is known").0.to_owned();
    assert_eq!(chosen(Some("one"), Some("two")), "one");
    assert_eq!(chosen(None, Some("two")), "two");
    assert_eq!(chosen(None, None), "device-local");
}

#[test]
fn selection_never_falls_back() {
    let registry = Registry::standard();
    for (explicit, configured) in
        [(Some("floppy"), Some("ram")), (None, Some("floppy")), (Some("floppy"), None)]
    {
        let error = registry.select(explicit, configured, &[]).expect_err("nobody registered it");
        assert_eq!(error.kind(), Kind::Unsupported);
        assert_eq!(error.message(), "there is no backend named `floppy`");
        let hint = error.hint_text().expect("it says what to do");
        assert_eq!(hint, format!("choose one of: {}", registry.protocols().join(", ")));
    }
    let empty = Registry::new();
    assert_eq!(empty.select(None, None, &[]).expect_err("even the default").kind(), Kind::Unsupported);
}

#[test]
fn a_requirement_must_be_offered() {
    let mut registry = Registry::new();
    let shared = Capabilities { concurrent_writers: true, sync: true, ..Capabilities::default() };
    registry.register("shared", registration("shared", shared), Clobber::Refuse).expect("a new name");
    assert!(registry.select(Some("shared"), None, &["concurrent_writers", "sync"]).is_ok());
    let error = registry.select(Some("shared"), None, &["sync", "encryption"]).expect_err("not offered");
    assert_eq!(error.kind(), Kind::Unsupported);
    assert_eq!(error.message(), "the backend `shared` does not offer `encryption`");
    let error = registry.select(Some("shared"), None, &["speed"]).expect_err("no capability");
    assert_eq!(error.kind(), Kind::Invalid);
    assert_eq!(error.message(), "`speed` is not a capability");
    assert_eq!(error.hint_text(), Some("choose from: concurrent_writers, conflict_files, encryption, sync"));
}

#[test]
fn capabilities_are_false_unless_a_backend_says_so() {
    assert!(Capabilities::default().entries().iter().all(|(_, offered)| !offered));
    assert_eq!(memgrove::backend::ConflictStrategy::default(), memgrove::backend::ConflictStrategy::None);
}

#[test]
fn what_is_registered_is_what_is_opened() {
    let registry = Registry::standard();
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let request = OpenRequest { location: String::new(), state: None, settings: BTreeMap::new(), clock };
    let ram = registry.get("ram").expect("it is standard");
    let backend = (ram.open)(&request).expect("it needs nothing");
    assert_eq!(backend.capabilities(), ram.capabilities);
    let other = (ram.open)(&request).expect("it needs nothing");
    Store::shared(backend).write(&at("a.md"), "a").expect("it is writable");
    assert!(
        !Store::shared(other).exists(&at("a.md")).expect("it is readable"),
        "each opening is a fresh one"
    );
    for protocol in registry.protocols() {
        assert!(!registry.get(protocol).expect("it is listed").about.is_empty(), "{protocol}");
    }
}

#[test]
fn tiers_say_what_syncs_and_what_is_derived() {
    let policy = Tier::ALL.map(|tier| (tier.name(), tier.syncs(), tier.derived()));
    assert_eq!(
        policy,
        [("source", true, false), ("shared-abstracts", true, true), ("local-index", false, true)]
    );
}

#[test]
fn tier_roots_are_distinct_or_an_error() {
    let layout = TierLayout::new(at("notes"), at("abstracts"), at("cache")).expect("three roots");
    let roots = Tier::ALL.map(|tier| layout.root_for(tier).key().to_owned());
    assert_eq!(roots, ["notes", "abstracts", "cache"]);
    assert_eq!(layout.never_sync_root(), &at("cache"));
    let default = TierLayout::default();
    for tier in Tier::ALL {
        assert_eq!(default.root_for(tier).key(), tier.name());
    }
    assert_eq!(default.never_sync_root(), default.root_for(Tier::LocalIndex));
    for (source, shared, index) in
        [("a", "a", "b"), ("a", "b", "a"), ("b", "a", "a"), ("a", "a", "a"), ("", "/", "x")]
    {
        let error = TierLayout::new(at(source), at(shared), at(index)).expect_err("two are the same");
        assert_eq!(error.kind(), Kind::Invalid);
        assert_eq!(error.message(), "two tiers have the same root");
    }
}

/// The least that can be derived: which files there are.
struct Names {
    store: Store,
    layout: TierLayout,
    known: Mutex<Vec<Locator>>,
}

impl DerivedMaintenance for Names {
    fn reindex(&self, tier: Tier) -> Result<()> {
        if !tier.derived() {
            return Err(Error::new(Kind::Invalid, format!("the tier `{}` is not derived", tier.name())));
        }
        let all = self.store.list_all(self.layout.root_for(Tier::Source))?;
        *self.known.lock().expect("no panic") = all.into_iter().map(|info| info.locator).collect();
        Ok(())
    }

    fn changed_since(&self, mtime: Timestamp) -> Result<Vec<Locator>> {
        let all = self.store.list_all(self.layout.root_for(Tier::Source))?;
        Ok(all
            .into_iter()
            .filter(|info| !info.is_dir() && info.mtime > mtime)
            .map(|info| info.locator)
            .collect())
    }
}

#[test]
fn a_derived_tier_is_rebuilt_from_its_source() -> Result<()> {
    let names =
        Names { store: Store::new(Ram::default()), layout: TierLayout::default(), known: Mutex::default() };
    let files = [at("source/a.md"), at("source/b.md"), at("local-index/not-a-source")];
    for file in &files {
        names.store.write(file, "text")?;
    }
    let then = names.store.info(&files[1])?.mtime;
    names.store.write(&files[0], "changed")?;
    assert_eq!(names.changed_since(then)?, [at("source/a.md")]);
    assert_eq!(names.changed_since(Timestamp::UNIX_EPOCH)?, [at("source/a.md"), at("source/b.md")]);
    names.reindex(Tier::LocalIndex)?;
    assert_eq!(*names.known.lock().expect("no panic"), [at("source/a.md"), at("source/b.md")]);
    assert_eq!(names.reindex(Tier::Source).expect_err("it is the truth").kind(), Kind::Invalid);
    Ok(())
}
