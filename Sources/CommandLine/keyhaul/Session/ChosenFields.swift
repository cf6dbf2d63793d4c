import ArgumentParser
import KeyhaulKit

/// The rows of a command's JSON document, from which `--fields` selects members.
struct FieldTable: Sendable {
  /// The name of the document's array.
  let rows: String
  let fields: [String]
  /// The name of a member that is an object, such as "attributes". Its members can be selected like members of the row.
  var nested: String?
  /// The names of the nested members that `--fields` accepts.
  var nestedFields: [String] = []

  var names: [String] { fields + nestedFields }
}

/// The `--fields` option.
struct FieldOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "Print only these fields of each row, as a JSON array; same as --json=field,field.",
      valueName: "field,..."))
  var fields: FieldList?

  init() {}
}

/// The field names of `--fields`, in the order given.
struct FieldList: ExpressibleByArgument, Sendable {
  let names: [String]

  init?(argument: String) {
    names = argument.split(separator: ",", omittingEmptySubsequences: false).map {
      String($0.drop { $0 == " " })
    }
  }
}

/// The fields to print of each row of a table.
struct ChosenFields: Sendable {
  let table: FieldTable
  let names: [String]

  /// Creates the selection from the field names that the user chose, and checks the names.
  ///
  /// - Parameters:
  ///   - table: The command's rows; `nil` if its result has no rows.
  ///   - advice: The advice if the result has no rows: flags with which it has rows.
  /// - Returns: `nil` if the user chose no fields.
  /// - Throws: `.usage` if the result has no rows, or for an unknown field.
  init?(
    _ options: FieldOptions, of table: FieldTable?, advice: String = "--json"
  ) throws(CommandError) {
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

  /// Returns a row that contains only the chosen fields. Missing fields are `null`.
  func row(_ row: JSONValue) -> JSONValue {
    .object(
      names.map { name in
        (name, row[name] ?? table.nested.flatMap { row[$0]?[name] } ?? .null)
      })
  }

  /// Returns the rows of a document, each with only the chosen fields.
  func rows(of document: JSONValue) -> JSONValue {
    guard case .elements(let count, let make) = document[table.rows] else {
      return .array((document[table.rows]?.arrayValue ?? []).map(row))
    }
    return .elements(count: count) { row(make($0)) }
  }
}
