//! Every crate that is built in may be used under the licences that `deny.toml` allows.

use std::process::Command;

use super::root;

/// Whether a licence expression can be satisfied with what is allowed.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut depth = 0;
    // The operator that binds least, outside of parentheses, divides the expression.
    for operator in [" AND ", " OR "] {
        for (index, c) in expression.char_indices() {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            if depth == 0 && expression[index..].starts_with(operator) {
                let (left, right) = (&expression[..index], &expression[index + operator.len()..]);
                let (left, right) = (satisfied(left, allowed), satisfied(right, allowed));
                return if operator == " AND " { left && right } else { left || right };
            }
        }
    }
    let bare = expression.trim();
    match bare.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => satisfied(inner, allowed),
        None => allowed.iter().any(|licence| licence == bare),
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let deny = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = deny.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
    let allowed: Vec<String> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(satisfied("MIT OR GPL-3.0", &allowed) && !satisfied("MIT AND GPL-3.0", &allowed));
    assert!(satisfied("(MIT OR GPL-3.0) AND Unicode-3.0", &allowed) && !satisfied("GPL-3.0", &allowed));
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50, "the list of packages is whole");
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(satisfied(licence, &allowed), "{} is under `{licence}`", package["name"]);
    }
}
