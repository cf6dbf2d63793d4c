import ArgumentParser
import KeyhaulKit

/// The rows of a verb's document, each an object: what `--fields` takes members of.
struct FieldTable: Sendable {
  /// The name of the document's array.
  let rows: String
  let fields: [String]
  /// The member of a row whose own members may be named as if they were the row's.
  let nested: String?
  /// The names of these that are known beforehand; a row may have others.
  let nestedFields: [String]

  init(_ rows: String, _ fields: [String], nested: String? = nil, nestedFields: [String] = []) {
    (self.rows, self.fields, self.nested, self.nestedFields) = (rows, fields, nested, nestedFields)
  }

  var names: [String] { fields + nestedFields }
}

/// Which fields of each row are printed.
struct FieldOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Print only these fields of each row, as a JSON array; same as --json=field,field.",
      valueName: "field,..."))
  var fields: FieldList?

  init() {}
}

/// Names of fields, in their order.
struct FieldList: ExpressibleByArgument, Sendable {
  let names: [String]

  init?(argument: String) {
    names = argument.split(separator: ",", omittingEmptySubsequences: false).map {
      String($0.drop { $0 == " " })
    }
  }
}

/// The fields that are printed of each row of a table.
struct ChosenFields: Sendable {
  let table: FieldTable
  let names: [String]

  /// - Parameters:
  ///   - table: `nil` if the result has no rows.
  ///   - advice: What has rows then.
  init?(
    _ options: FieldOptions, of table: FieldTable?, otherwise advice: String = "--json"
  ) throws(CommandFailure) {
    guard let names = options.fields?.names else { return nil }
    guard let table else {
      throw .usage("--fields needs a result with rows", why: "this result is a document without rows", try: advice)
    }
    for name in names where !table.names.contains(name) {
      let title = UntrustedText.shortened(name, columns: 40)
      throw .usage(
        "there is no field \"\(title)\"", why: "the fields are \(HumanReadable.list(table.names))",
        try: EditDistance.nearest(to: name, among: table.names).map { "--fields \($0)" } ?? "one of these fields")
    }
    (self.table, self.names) = (table, names)
  }

  /// A row with nothing but these; what the row does not have is null.
  func row(_ row: JSONValue) -> JSONValue {
    .object(
      names.map { name in
        (name, row[name] ?? table.nested.flatMap { row[$0]?[name] } ?? .null)
      })
  }

  /// The rows of a document.
  func rows(of document: JSONValue) -> JSONValue {
    guard case .elements(let count, let make) = document[table.rows] else {
      return .array((document[table.rows]?.arrayValue ?? []).map(row))
    }
    return .elements(count: count) { row(make($0)) }
  }
}
