import CommandArguments
import CommandSession
import KeychainFormats

extension JSONValue {
  /// Writes the document of an object that has fields, and after them an array too long to be held: its elements are
  /// written as they come.
  func write(
    endingIn tail: some ReportTail, to body: (String) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    let head = String(text().dropLast("\n}".count)) + ",\n  " + JSONValue.string(tail.field).compactText()
    try body(head + ": [")
    var isEmpty = true
    try tail.forEachElement { (element) throws(CommandFailure) in
      try body((isEmpty ? "\n    " : ",\n    ") + element.text(indentedBy: 4))
      isEmpty = false
    }
    try body(isEmpty ? "]\n}" : "\n  ]\n}")
  }
}
