#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

fn from_file(text: &str) -> Result<Layered, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("baton.toml");
    std::fs::write(&path, text).unwrap();
    let mut layered = Layered::defaults();
    layered.file(&path)?;
    Ok(layered)
}

fn origin(layered: &Layered, key: &str) -> String {
    let (_, origin) = &layered.values[key];
    match origin {
        Origin::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
        other => other.to_string(),
    }
}

#[test]
fn defaults_alone_make_a_configuration() {
    let config = Layered::defaults().config().unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7717");
    assert_eq!(config.limits, Limits::default());
    assert_eq!(config.rate_limit_per_second, None);
    assert!(!config.conformance && config.mirror_capabilities);
}

#[test]
fn later_layers_win_and_origins_are_kept() {
    let mut layered = from_file(
        "listen = \"127.0.0.1:1\"\ndata = \"/file\"\n[limits]\nmax_nesting_depth = 7\n[log]\nlevel = \"warn\"\n",
    )
    .unwrap();
    let env = [("BATON_LISTEN", "127.0.0.1:2"), ("BATON_DATA", "/env"), ("BATON_WORKFLOWS", "a:b")];
    layered.env(|name| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())).unwrap();
    layered.flag("listen", "--listen", Value::Text("127.0.0.1:3".to_owned()));
    let config = layered.config().unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.data, PathBuf::from("/env"));
    assert_eq!(config.workflows, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(config.limits.max_nesting_depth, 7);
    assert_eq!(config.log_level, "warn");
    let origins = ["listen", "data", "limits.max_nesting_depth", "max_in_flight"].map(|key| origin(&layered, key));
    assert_eq!(origins, ["--listen", "BATON_DATA", "baton.toml", "default"]);
}

#[test]
fn a_misspelt_key_is_an_error_with_a_suggestion() {
    let error = from_file("[limits]\nmax_nesting_dept = 3\n").unwrap_err().to_string();
    assert!(
        error.ends_with("unknown key `limits.max_nesting_dept`; did you mean `limits.max_nesting_depth`?"),
        "{error}"
    );
    let error = from_file("colour = true\n").unwrap_err().to_string();
    assert!(error.ends_with("unknown key `colour`"), "{error}");
    let error = from_file("[modles]\ndefault = \"a/b\"\n").unwrap_err().to_string();
    assert!(error.ends_with("unknown key `modles.default`; did you mean `[models]`?"), "{error}");
}

#[test]
fn a_value_of_the_wrong_kind_names_its_origin() {
    for (text, key) in [
        ("listen = 7717\n", "listen"),
        ("listen = \"nowhere\"\n", "listen"),
        ("conformance = \"yes\"\n", "conformance"),
        ("max_in_flight = -1\n", "max_in_flight"),
        ("[log]\nlevel = \"loud\"\n", "log.level"),
    ] {
        let error = from_file(text).unwrap_err().to_string();
        assert!(error.contains("baton.toml: `") && error.contains(key), "{error}");
    }
    let mut layered = Layered::defaults();
    let error = layered.env(|name| (name == "BATON_MAX_IN_FLIGHT").then(|| "many".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "BATON_MAX_IN_FLIGHT: `max_in_flight` must be a whole number of at least 0");
}

#[test]
fn a_number_too_large_for_its_setting_is_refused() {
    let layered = from_file("[limits]\nmax_nesting_depth = 5000000000\n").unwrap();
    assert!(layered.config().unwrap_err().to_string().contains("`limits.max_nesting_depth` must be a smaller number"));
}

#[test]
fn keys_come_from_the_environment_only_and_are_never_shown() {
    let error = from_file("api_keys = \"k:t\"\n").unwrap_err().to_string();
    assert!(error.contains("BATON_API_KEYS") && !error.contains("k:t"), "{error}");
    let mut layered = Layered::defaults();
    layered.env(|name| (name == "BATON_API_KEYS").then(|| "k:t".to_owned())).unwrap();
    assert_eq!(layered.config().unwrap().api_keys.as_deref(), Some("k:t"));
    assert!(layered.rows().all(|(_, value, _)| value.is_none_or(|value| !value.to_string().contains("k:t"))));
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let mut layered = from_file("api_keys_file = \"keys\"\nmax_in_flight = 7\nconformance = true\n").unwrap();
    layered.env(|_| Some(String::new())).unwrap();
    let config = layered.config().unwrap();
    assert_eq!((config.api_keys, config.max_in_flight, config.conformance), (None, 7, true));
    assert_eq!(config.api_keys_file, Some("keys".into()));
}

#[test]
fn a_database_without_connections_is_refused() {
    let sized = |size: u32| from_file(&format!("[database]\nurl = \"postgres://db/x\"\npool_size = {size}\n")).unwrap();
    let refused = sized(0).config().unwrap_err().to_string();
    assert!(refused.contains("`database.pool_size` must be 1 or more"), "{refused}");
    assert_eq!(sized(1).config().unwrap().database.unwrap().pool_size, 1);
}

#[test]
fn a_transcript_has_room_for_the_turns_that_are_kept() {
    let context = |chars: u64, turns: u64| {
        from_file(&format!("[context]\ntranscript_chars = {chars}\nkeep_last_turns = {turns}\n")).unwrap().config()
    };
    for (chars, turns, wrong) in [
        (1_999, 1, "`context.transcript_chars` must be from 2000 to 400000"),
        (400_001, 6, "`context.transcript_chars` must be from 2000 to 400000"),
        (24_000, 0, "`context.keep_last_turns` must be from 1 to 32"),
        (24_000, 33, "`context.keep_last_turns` must be from 1 to 32"),
        (5_000_000_000, 6, "`context.transcript_chars` must be from 2000 to 400000"),
        (2_000, 6, "`context.keep_last_turns` must be a smaller number: each turn that is kept needs 400"),
        (12_799, 32, "`context.keep_last_turns` must be a smaller number"),
    ] {
        let error = context(chars, turns).unwrap_err().to_string();
        assert!(error.contains("baton.toml: ") && error.contains(wrong), "{chars} {turns}: {error}");
    }
    for (chars, turns) in [(2_000, 5), (12_800, 32), (400_000, 1)] {
        let read = context(chars, turns).unwrap().context;
        assert_eq!((u64::from(read.transcript_chars), u64::from(read.keep_last_turns)), (chars, turns));
    }
    assert_eq!(Layered::defaults().config().unwrap().context, Default::default());
}

#[test]
fn readers_are_the_connections_that_read_a_database_too() {
    let sized = |text: &str| {
        let text = format!("{text}[database]\nurl = \"postgres://db/x\"\npool_size = 5\n");
        let mut layered = from_file(&text).unwrap();
        let of = |layered: &Layered| {
            let config = layered.config().unwrap();
            (config.readers, config.database.unwrap().pool_size)
        };
        let before = of(&layered);
        layered.env(|name| (name == "BATON_READERS").then(|| "1".to_owned())).unwrap();
        (before, of(&layered))
    };
    assert_eq!(sized(""), ((0, 5), (1, 1)));
    assert_eq!(sized("readers = 3\n"), ((3, 3), (1, 1)));
    assert_eq!(sized("readers = 0\n"), ((0, 5), (1, 1)));
}

#[test]
fn the_suites_own_switches_are_honoured() {
    let mut layered = Layered::defaults();
    layered.env(|name| name.starts_with("OPENWOP_").then(|| "true".to_owned())).unwrap();
    let config = layered.config().unwrap();
    assert!(config.conformance && config.allow_private_webhooks);
}

#[test]
fn every_setting_has_its_own_variable() {
    let names: std::collections::BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.env).collect();
    assert_eq!(names.len(), SETTINGS.len());
    assert!(names.iter().all(|name| name.starts_with("BATON_")));
}

#[test]
fn misspelt_variables_are_noticed() {
    let names = ["BATON_LISTN", "BATON_SERVICE_HOST", "BATON_URL", "BATON_LISTEN", "PATH"];
    assert_eq!(
        Layered::unknown_vars(names.into_iter().map(str::to_owned)),
        [("BATON_LISTN".to_owned(), Some("BATON_LISTEN")), ("BATON_SERVICE_HOST".to_owned(), None)]
    );
}

#[test]
fn an_old_name_works_with_a_warning_and_the_new_one_wins() {
    let layered = from_file("remote_patience_ms = 5\nwaive = [\"a\"]\n[escalation]\nfloor_percent = 60\n").unwrap();
    let config = layered.config().unwrap();
    assert_eq!((config.remote_timeout_ms, config.ignored_requirements.as_slice()), (5, &["a".to_owned()][..]));
    assert!((config.escalation.floor - 0.6).abs() < 1e-9);
    assert_eq!(config.warnings.len(), 3, "{:?}", config.warnings);
    assert!(
        config.warnings[0].contains("`remote_patience_ms` is called `remote_timeout_ms` now"),
        "{:?}",
        config.warnings
    );

    let both = from_file("remote_patience_ms = 5\nremote_timeout_ms = 7\n").unwrap().config().unwrap();
    assert_eq!((both.remote_timeout_ms, both.warnings.len()), (7, 1));

    let mut layered = from_file("remote_timeout_ms = 7\n").unwrap();
    let env = [("BATON_REMOTE_PATIENCE_MS", "8"), ("BATON_WAIVE", "a,b"), ("BATON_IGNORE_REQUIREMENTS", "c")];
    layered.env(|name| env.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned())).unwrap();
    assert_eq!(origin(&layered, "remote_timeout_ms"), "BATON_REMOTE_PATIENCE_MS");
    let config = layered.config().unwrap();
    assert_eq!((config.remote_timeout_ms, config.ignored_requirements), (8, vec!["c".to_owned()]));
    assert_eq!(config.warnings.len(), 2);
    assert_eq!(Layered::unknown_vars(["BATON_WAIVE".to_owned()].into_iter()), []);

    let error = from_file("waive = 3\n").unwrap_err().to_string();
    assert!(error.ends_with("`ignore_requirements` must be a list of texts"), "{error}");
}

#[test]
fn every_renamed_setting_is_one_and_its_old_name_is_none() {
    for renamed in RENAMED {
        assert!(SETTINGS.iter().any(|setting| setting.key == renamed.key), "{}", renamed.key);
        assert!(SETTINGS.iter().all(|setting| setting.key != renamed.old_key && setting.env != renamed.old_env));
    }
}

#[test]
fn a_providers_recording_may_still_be_called_a_cassette() {
    let text = |name: &str| format!("[providers.a]\nkind = \"mock\"\n{name} = {{ mode = \"record\", path = \"x\" }}\n");
    let old = from_file(&text("cassette")).unwrap().config().unwrap();
    let new = from_file(&text("recording")).unwrap().config().unwrap();
    assert_eq!(old.sections.providers["a"].settings.recording, new.sections.providers["a"].settings.recording);
    assert!(new.sections.providers["a"].settings.recording.is_some() && new.warnings.is_empty());
    assert_eq!(old.warnings.len(), 1, "{:?}", old.warnings);
    assert!(old.warnings[0].starts_with("`providers.a.cassette` is called `providers.a.recording` now"));
}

#[test]
fn the_guide_has_a_row_for_every_setting() {
    let guide = include_str!("../../../../docs/guide/operating.md");
    let rows: Vec<Vec<&str>> = guide
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains("`BATON_"))
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    for setting in SETTINGS {
        let row = rows.iter().find(|row| row[0] == setting.key);
        let row = row.unwrap_or_else(|| panic!("`{}` is missing in the guide", setting.key));
        assert_eq!(row[2], setting.env, "{}", setting.key);
        let default = default_of(setting.key).map_or_else(|| "–".to_owned(), |value| value.to_string());
        assert_eq!(row[1], default, "{}", setting.key);
    }
    assert_eq!(rows.len(), SETTINGS.len(), "the guide has rows for settings that are gone");
}
