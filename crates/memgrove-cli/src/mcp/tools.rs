//! The table of verbs as MCP tools: descriptions and schemas as short as they can be, because
//! every agent pays for them in every conversation.

use std::sync::Arc;

use clap::ValueEnum;
use memgrove::{Error, Kind, Result};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::context::Context;
use crate::verbs::{Effect, Entry, On, Reply, TABLE, not_taken};

/// Floats up to this one hold every whole number exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Which tools a server offers: one set of tools, or several together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile(Vec<On>);

impl Profile {
    /// Unites these sets, in any order.
    ///
    /// # Errors
    /// `Invalid` for the MCP memory server's tools beside others, because they have their own conventions.
    pub(crate) fn new(mut sets: Vec<On>) -> Result<Self> {
        sets.sort_unstable();
        sets.dedup();
        match sets.contains(&On::Kg) && sets.len() > 1 {
            true => Err(Error::new(Kind::Invalid, "`kg` cannot be combined with other tools")
                .hint("serve it alone, and the others from a second server")),
            false => Ok(Profile(sets)),
        }
    }

    /// Whether it is the set of the MCP memory server, whose tools are no verbs.
    pub(crate) fn is_kg(&self) -> bool {
        self.0 == [On::Kg]
    }

    fn offers(&self, entry: &Entry) -> bool {
        entry.on.iter().any(|on| self.0.contains(on)) || (self.0.contains(&On::All) && is_tool(entry))
    }
}

/// Whether a verb is a tool in some set.
fn is_tool(entry: &Entry) -> bool {
    entry.on.iter().any(|on| !matches!(on, On::Cli | On::Http))
}

/// The tools offered where none are chosen.
impl Default for Profile {
    fn default() -> Self {
        Profile(vec![On::Core])
    }
}

/// The names of sets with commas between them, as `/mcp?tools=` has them.
impl std::str::FromStr for Profile {
    type Err = Error;

    fn from_str(names: &str) -> Result<Self> {
        let set = |name: &str| {
            On::from_str(name, true).map_err(|_| {
                let sets = On::value_variants().iter().filter_map(ValueEnum::to_possible_value);
                let known: Vec<String> = sets.map(|set| set.get_name().to_owned()).collect();
                let message = format!("there is no set of tools `{}`", name.escape_default());
                Error::new(Kind::Invalid, message).hint(format!("choose from: {}", known.join(", ")))
            })
        };
        Profile::new(names.split(',').map(set).collect::<Result<Vec<On>>>()?)
    }
}

/// The tools of one server.
pub(crate) struct Toolbox {
    offered: Vec<(&'static Entry, Tool)>,
}

impl Toolbox {
    /// The tools of a profile.
    pub(crate) fn new(profile: &Profile) -> Self {
        let offered = TABLE.iter().filter(|entry| profile.offers(entry)).map(|entry| (entry, tool(entry)));
        Toolbox { offered: offered.collect() }
    }

    /// The tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        self.offered.iter().map(|(_, tool)| tool.clone()).collect()
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// `Invalid` for a tool that is not offered and for arguments it does not take; else the verb's.
    pub(crate) fn call(&self, name: &str, arguments: Value, cx: &Context) -> Result<Box<dyn Reply>> {
        let Some((entry, tool)) = self.offered.iter().find(|(entry, _)| entry.tool == name) else {
            let names: Vec<&str> = self.offered.iter().map(|(entry, _)| entry.tool).collect();
            return Err(Error::new(Kind::Invalid, format!("there is no tool `{}`", name.escape_default()))
                .hint(format!("choose from: {}", names.join(", "))));
        };
        let arguments = fitted(entry, &tool.input_schema, arguments)?;
        (entry.run_json)(arguments, cx)
    }

    /// Replaces commands in a hint by the names of these tools: `memgrove entity search` is `entity_search`.
    /// Drops a hint that names a tool that is not offered. Other commands stay: they are for users.
    pub(super) fn reworded(&self, hint: &str) -> Option<String> {
        let parts = hint.split('`').enumerate().map(|(index, part)| match part.strip_prefix("memgrove ") {
            Some(command) if index % 2 == 1 => self.call_of(command),
            _ => Some(part.to_owned()),
        });
        Some(parts.collect::<Option<Vec<String>>>()?.join("`"))
    }

    /// A command without `memgrove` as a call of its tool, if that is offered.
    fn call_of(&self, command: &str) -> Option<String> {
        let plain = |words: &str| words.replace(['-', '_'], " ");
        let spelled = plain(command);
        let begins = |entry: &&Entry| {
            let rest = spelled.strip_prefix(&plain(entry.name));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let verb = TABLE.iter().filter(begins).max_by_key(|entry| entry.name.len());
        let Some(verb) = verb.filter(|entry| is_tool(entry)) else {
            return Some(format!("memgrove {command}"));
        };
        let is_offered = self.offered.iter().any(|(entry, _)| entry.name == verb.name);
        let arguments = command[verb.name.len()..].replace(" --", " ");
        is_offered.then(|| format!("{}{arguments}", verb.tool))
    }
}

/// The arguments, checked against the schema one by one, so that a model is told which is wrong.
/// One that is null is as good as left out.
fn fitted(entry: &Entry, schema: &JsonObject, arguments: Value) -> Result<Value> {
    let name = entry.tool;
    let wrong = |message: String| Error::new(Kind::Invalid, message);
    let Value::Object(mut given) = arguments else {
        return Err(wrong(format!("the arguments of `{name}` are not an object")));
    };
    given.retain(|_, value| !value.is_null());
    let known = schema.get("properties").and_then(Value::as_object);
    for (argument, value) in &mut given {
        let shown = argument.escape_default();
        let property = known.and_then(|known| known.get(argument));
        let kind = match property {
            Some(property) => property.get("type").and_then(Value::as_str),
            None => Some(entry.untold(argument).ok_or_else(|| not_taken(name, argument, known))?),
        };
        if kind == Some("integer") {
            make_integer(value);
        } else if property.is_some_and(|property| property["items"]["type"] == "integer") {
            value.as_array_mut().into_iter().flatten().for_each(make_integer);
        }
        if let Some(kind) = kind.filter(|kind| !is_a(kind, value)) {
            return Err(wrong(format!("`{shown}` of `{name}` is not of the type {kind}")));
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    match required.filter_map(Value::as_str).find(|argument| !given.contains_key(*argument)) {
        Some(missing) => Err(wrong(format!("`{name}` needs the argument `{missing}`"))),
        None => Ok(Value::Object(given)),
    }
}

/// Makes an integer of a whole number that is written as `10.0` or `1e3`, as some clients write all numbers.
fn make_integer(value: &mut Value) {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() <= WHOLE_MAX);
    if let Some(number) = number.filter(|_| value.is_f64()) {
        *value = Value::from(number as i64);
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

fn tool(entry: &Entry) -> Tool {
    let mut input = (entry.input)().to_value();
    let description = input.as_object_mut().and_then(|schema| schema.remove("description"));
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut tool = Tool::new(entry.tool, first_line(description).to_owned(), trimmed(input, Words::First))
        .with_title(entry.title)
        .with_raw_output_schema(trimmed((entry.output)().to_value(), Words::None));
    let annotations = ToolAnnotations::new()
        .read_only(entry.effect == Effect::Read)
        .destructive(entry.effect == Effect::Remove)
        .idempotent(entry.effect == Effect::Read)
        .open_world(false);
    tool.annotations = Some(annotations);
    if entry.text_only {
        tool.output_schema = None;
    }
    tool
}

/// The part of a description that a model needs: its first line, without defaults for the command line.
fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or("");
    line.split_once(" [default").map_or(line, |(words, _)| words)
}

/// How much of a schema's descriptions is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// The first line.
    First,
    /// Nothing: the names say it.
    None,
}

/// Removes from a schema what costs tokens and tells a model nothing.
fn trimmed(mut schema: Value, words: Words) -> Arc<JsonObject> {
    trim(&mut schema, words);
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}

fn trim(schema: &mut Value, words: Words) {
    let Value::Object(object) = schema else { return };
    object.retain(|key, value| match key.as_str() {
        "$schema" | "title" | "format" | "minimum" => false,
        "default" => value.is_number(),
        "description" => words == Words::First,
        _ => true,
    });
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = first_line(text).to_owned();
    }
    // An optional argument is left out, never null.
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    for (key, value) in object.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(parts)) => {
                parts.values_mut().for_each(|part| trim(part, words));
            }
            // Strict clients refuse a schema that is just `true`; whatever comes in such lists is an object.
            ("items", part) if part.as_bool() == Some(true) => *part = json!({"type": "object"}),
            ("items", part) => trim(part, words),
            ("anyOf" | "oneOf" | "allOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| trim(part, words));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portion;

    /// What a client puts before the model.
    fn read_by_models(tool: &Tool) -> String {
        let schema = serde_json::to_string(&*tool.input_schema).expect("a schema is plain data");
        format!("{}{}{schema}", tool.name, tool.description.as_deref().unwrap_or_default())
    }

    /// A ratchet: raise it only for a tool that is worth what every conversation pays for it.
    #[test]
    fn the_tool_lists_are_short() {
        for (set, listed_max, read_max) in [
            (On::Core, 2_300, 1_000),
            (On::Files, 960, 450),
            (On::Records, 2_700, 1_400),
            (On::Entities, 1_550, 780),
            (On::Graph, 2_550, 1_850),
            (On::Notes, 1_850, 880),
            (On::All, 12_200, 7_350),
        ] {
            let tools = Toolbox::new(&Profile(vec![set])).tools();
            let listed = portion::tokens(&serde_json::to_string(&tools).expect("tools are plain data"));
            let read: usize = tools.iter().map(|tool| portion::tokens(&read_by_models(tool))).sum();
            println!("{set:?}: {} tools, {read} tokens for the model, {listed} on the wire", tools.len());
            assert!(listed <= listed_max, "{set:?} lists {listed} tokens, more than {listed_max}");
            assert!(read <= read_max, "{set:?} costs the model {read} tokens, more than {read_max}");
        }
    }

    #[test]
    fn sets_of_tools_can_be_united() {
        let named = |names: &str| -> Result<Vec<String>> {
            let tools = Toolbox::new(&names.parse()?).tools();
            Ok(tools.iter().map(|tool| tool.name.to_string()).collect())
        };
        let (core, notes) = (named("core").expect("a set"), named("notes").expect("a set"));
        let both = named("notes,core").expect("two sets");
        assert!(core.iter().chain(&notes).all(|tool| both.contains(tool)) && both.len() > core.len());
        assert_eq!(both, named("core,notes,core").expect("the same two"));
        assert_eq!(named("core,all").expect("all").len(), named("all").expect("all").len());
        assert_eq!(
            named("core,kg").expect_err("kg is apart").message(),
            "`kg` cannot be combined with other tools"
        );
        let error = named("core,").expect_err("an empty name");
        assert!(error.hint_text().is_some_and(|hint| hint.contains("core, files") && !hint.contains("cli")));
    }

    /// Every conversation pays for the default tools: counted as a model of today counts them.
    #[test]
    fn the_default_tools_cost_at_most_1200_tokens() {
        let tokenizer = tiktoken_rs::o200k_base().expect("the tokenizer is built in");
        let tools = Toolbox::new(&Profile::default()).tools();
        let listed = serde_json::to_string(&tools).expect("tools are plain data");
        let count = tokenizer.encode_ordinary(&listed).len();
        println!("core: {} tools, {count} tokens of o200k, all that is sent", tools.len());
        assert!(count <= 1_200, "{count} tokens: {listed}");
    }

    /// Budgets are counted with the word pieces that are shipped: rather too many than too few.
    #[test]
    fn budgets_are_counted_on_the_safe_side() {
        let tokenizer = tiktoken_rs::o200k_base().expect("the tokenizer is built in");
        let prose = include_str!("../../../../README.md");
        let code = include_str!("tools.rs");
        for text in [prose, code, "Grüße aus Köln, 東京 und Санкт-Петербург", "{\"a\":[1,2,3]}"]
        {
            let (ours, theirs) = (memgrove::index::tokens(text), tokenizer.encode_ordinary(text).len());
            println!("{ours} word pieces, {theirs} tokens of o200k");
            assert!(ours * 10 >= theirs * 9, "{ours} {theirs}");
        }
    }

    #[test]
    fn every_tool_is_described_whole() {
        for tool in Toolbox::new(&Profile(vec![On::All])).tools() {
            let name = &tool.name;
            assert!(tool.title.is_some_and(|title| !title.is_empty()), "{name} has no title");
            assert!(tool.description.is_some_and(|text| !text.is_empty()), "{name} has no description");
            assert_eq!(tool.input_schema.get("type"), Some(&"object".into()), "{name}");
            let text_only = TABLE.iter().any(|entry| entry.tool == name && entry.text_only);
            assert_eq!(tool.output_schema.is_none(), text_only, "{name}");
            if let Some(output) = tool.output_schema {
                assert_eq!(output.get("type"), Some(&"object".into()), "{name}");
            }
            let annotations = tool.annotations.expect("every verb has an effect");
            assert_eq!(annotations.open_world_hint, Some(false), "{name}");
        }
    }

    fn schema_of(name: &str) -> Arc<JsonObject> {
        let entry = TABLE.iter().find(|entry| entry.name == name).expect("it is in the table");
        trimmed((entry.input)().to_value(), Words::First)
    }

    #[test]
    fn arguments_are_checked_one_by_one() {
        let entry = TABLE.iter().find(|entry| entry.name == "file_insert").expect("it is in the table");
        let schema = schema_of("file_insert");
        let check = |arguments: Value, expected: Result<Value, &str>| {
            let got = fitted(entry, &schema, arguments);
            assert_eq!(got.as_ref().map_err(Error::message), expected.as_ref().map_err(|text| *text));
        };
        let good = json!({"path": "a", "line": 1, "text": "x"});
        check(good.clone(), Ok(good.clone()));
        check(json!({"path": "a", "line": 1, "text": "x", "key": null}), Ok(good));
        check(json!({"path": "a", "text": "x"}), Err("`file_insert` needs the argument `line`"));
        check(
            json!({"path": "a", "line": "1", "text": "x"}),
            Err("`line` of `file_insert` is not of the type integer"),
        );
        check(json!({"pth": "a"}), Err("`file_insert` takes no argument `pth`"));
        check(json!([]), Err("the arguments of `file_insert` are not an object"));
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        let check = |name: &str, given: &str, expected: Result<&str, &str>| {
            let entry = TABLE.iter().find(|entry| entry.name == name).expect("it is in the table");
            let given = serde_json::from_str(given).expect("JSON");
            let got = fitted(entry, &schema_of(name), given).map(|arguments| arguments.to_string());
            assert_eq!(got.as_deref().map_err(Error::message), expected);
        };
        check("read", r#"{"address":"a","budget":1000.0}"#, Ok(r#"{"address":"a","budget":1000}"#));
        check("read", r#"{"address":"a","around":-1e0}"#, Ok(r#"{"address":"a","around":-1}"#));
        check("recall", r#"{"limit":1e1,"query":"q"}"#, Ok(r#"{"limit":10,"query":"q"}"#));
        let view = |range: &str| format!(r#"{{"command":"view","view_range":{range}}}"#);
        check("memory", &view("[1.0,2e1]"), Ok(&view("[1,20]")));
        for number in ["1.5", "1e300", "\"1\""] {
            let given = format!(r#"{{"address":"a","budget":{number}}}"#);
            check("read", &given, Err("`budget` of `read` is not of the type integer"));
        }
    }

    #[test]
    fn hints_name_only_tools_that_are_there() {
        let check = |set: On, hint: &str, expected: Option<&str>| {
            let toolbox = Toolbox::new(&Profile(vec![set]));
            assert_eq!(toolbox.reworded(hint).as_deref(), expected, "{set:?}: {hint}");
        };
        let history = "another change can be undone by its number; `memgrove history` lists them";
        check(On::Core, history, None);
        check(On::All, history, Some("another change can be undone by its number; `history` lists them"));
        check(
            On::Core,
            "`memgrove recall` finds addresses by words",
            Some("`recall` finds addresses by words"),
        );
        check(
            On::Notes,
            "`memgrove note merge a/b` merges it back",
            Some("`merge_memory a/b` merges it back"),
        );
        let rebuild = "fix its `.meta.json`, then run `memgrove graph check --rebuild`";
        check(On::All, rebuild, Some("fix its `.meta.json`, then run `graph_check rebuild`"));
        check(On::Graph, rebuild, None);
        // What is no tool anywhere is for the user.
        for hint in
            ["run `memgrove doctor`", "`memgrove record restore-backup` lists what there is", "try `a.md`"]
        {
            check(On::Core, hint, Some(hint));
        }
    }

    /// Every part of the schemas of all tools, with its place.
    fn parts_of_schemas() -> Vec<(String, Value)> {
        fn gather(place: String, schema: &Value, found: &mut Vec<(String, Value)>) {
            for (name, part) in schema["properties"].as_object().into_iter().flatten() {
                gather(format!("{place}.{name}"), part, found);
            }
            if let Some(items) = schema.get("items") {
                gather(format!("{place}[]"), items, found);
            }
            found.push((place, schema.clone()));
        }
        let mut found = Vec::new();
        for tool in Toolbox::new(&Profile(vec![On::All])).tools() {
            gather(format!("{} takes", tool.name), &Value::Object((*tool.input_schema).clone()), &mut found);
            if let Some(output) = tool.output_schema {
                gather(format!("{} answers", tool.name), &Value::Object((*output).clone()), &mut found);
            }
        }
        found
    }

    /// Strict clients refuse a whole list of tools over one schema that is just `true`.
    #[test]
    fn every_part_of_a_schema_has_a_type() {
        let typed = |schema: &Value| ["type", "anyOf", "oneOf"].iter().any(|key| schema.get(key).is_some());
        let wrong: Vec<(String, Value)> =
            parts_of_schemas().into_iter().filter(|(_, schema)| !typed(schema)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn descriptions_are_whole_and_for_models() {
        for (place, schema) in parts_of_schemas() {
            let said = schema["description"].as_str().unwrap_or_default();
            assert!(!said.ends_with(':'), "the example is lost: {place}: {said}");
            assert!(!said.contains("standard input"), "models have none: {place}: {said}");
        }
        assert_eq!(first_line("Such as: [{name}] [default: standard input]\n\nMore"), "Such as: [{name}]");
    }

    #[test]
    fn schemas_are_trimmed() {
        for tool in Toolbox::new(&Profile(vec![On::All])).tools() {
            for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten() {
                let told = serde_json::to_string(&**schema).expect("plain data");
                let wordy = ["$schema", "null", "$ref"].into_iter().find(|word| told.contains(*word));
                assert_eq!(wordy, None, "{}: {told}", tool.name);
            }
        }
    }
}
