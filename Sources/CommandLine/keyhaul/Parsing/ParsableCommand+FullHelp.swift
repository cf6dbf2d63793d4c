import ArgumentParser

extension ParsableCommand {
  /// Everything that the parser says of a command; of the forms of a result, which it knows as a flag of all verbs, those
  /// that this verb's has.
  ///
  /// - Parameter root: The command that it is a verb of.
  static func fullHelp(below root: any ParsableCommand.Type, columns: Int) -> String {
    let text = root.helpMessage(for: self, columns: columns)
    guard let verb = self as? any Verb.Type else { return text }
    let forms = verb.formats.map(\.rawValue).joined(separator: ", ")
    // The parser's column of descriptions.
    let indent = String(repeating: " ", count: 26)
    let lines = WordWrap.lines(of: "How to print the result. (values: \(forms))", columns: columns - indent.count)
    return text.replacing(
      /How to print the result\.\s+\(values:[^)]*\)/, with: lines.joined(separator: "\n" + indent))
  }
}
