//! The table of verbs as MCP tools: descriptions and schemas as short as they can be, because
//! every agent pays for them in every conversation.

use std::sync::Arc;

use clap::ValueEnum;
use memgrove::{Error, Kind, Result};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::context::Context;
use crate::verbs::{Effect, Entry, On, Reply, TABLE, not_taken};

/// Which tools a server offers: one set of them, or several united.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile(Vec<On>);

impl Profile {
    /// The sets of these names, in any order.
    ///
    /// # Errors
    /// `Invalid` for the tools of the MCP memory server beside others: they have words of their own.
    pub(crate) fn new(mut sets: Vec<On>) -> Result<Self> {
        sets.sort_unstable();
        sets.dedup();
        match sets.contains(&On::Kg) && sets.len() > 1 {
            true => Err(Error::new(Kind::Invalid, "`kg` cannot be combined with other tools")
                .hint("serve it alone, and the others from a second server")),
            false => Ok(Profile(sets)),
        }
    }

    /// Whether it is that of the MCP memory server, whose tools are no verbs.
    pub(crate) fn is_kg(&self) -> bool {
        self.0 == [On::Kg]
    }

    fn offers(&self, entry: &Entry) -> bool {
        let all = self.0.contains(&On::All);
        entry.on.iter().any(|on| self.0.contains(on) || (all && !matches!(on, On::Cli | On::Http)))
    }
}

/// What is offered to whoever does not choose.
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
    for (argument, value) in &given {
        let shown = argument.escape_default();
        let kind = match known.and_then(|known| known.get(argument)) {
            Some(property) => property.get("type").and_then(Value::as_str),
            None => Some(entry.untold(argument).ok_or_else(|| not_taken(name, argument, known))?),
        };
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

/// What a model needs of a description: its first line, without what the command line adds to it.
fn first_line(text: &str) -> &str {
    let line = text.lines().next().unwrap_or("");
    line.split_once(" [").map_or(line, |(words, _)| words)
}

/// What is kept of a schema's descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// The first line.
    First,
    /// Nothing: the names say it.
    None,
}

/// A schema without what costs tokens and says nothing.
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
    // What is optional is left out, never null.
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
        use serde_json::json;
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
    fn schemas_are_trimmed() {
        let schema = schema_of("file_view");
        let told = serde_json::to_string(&*schema).expect("plain data");
        assert!(!told.contains("$schema") && !told.contains("null") && !told.contains("$ref"), "{told}");
    }
}
