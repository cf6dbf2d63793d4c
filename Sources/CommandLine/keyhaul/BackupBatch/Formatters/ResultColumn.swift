import KeyhaulKit

/// A column of the CSV table, with a value from the command's document.
struct ResultColumn: Sendable {
  let name: String
  private let read: @Sendable (JSONValue) -> JSONValue?

  init(_ name: String, _ read: @escaping @Sendable (JSONValue) -> JSONValue?) {
    self.name = name
    self.read = read
  }

  /// Creates a column from the member at a path.
  init(_ name: String, at path: String...) {
    self.init(name) { document in path.reduce(document) { value, member in value?[member] } }
  }

  /// Returns the text of a cell; empty if the document does not state the value.
  func text(in document: JSONValue?) -> String {
    switch document.flatMap(read) {
    case .integer(let value): String(value)
    case .string(let value): value
    case .boolean(let value): value ? "true" : "false"
    case .number(let value): String(value)
    case nil, .null, .sensitive, .array, .elements, .object: ""
    }
  }
}

/// A column of the text table.
struct ResultTextColumn: Sendable {
  let title: String
  /// The width in columns.
  let width: Int
  var isRightAligned = false
  /// The text before the value if the columns do not fit and the values are below the row.
  var label = ""
  /// Returns whether the value applies to a result's backup.
  var isShown: @Sendable (BatchResult) -> Bool = { _ in true }
  /// Returns the text of a cell; `nil` if the document does not state the value.
  let text: @Sendable (JSONValue) -> String?
}
