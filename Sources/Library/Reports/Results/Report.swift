package import KeyhaulKit

/// A result that can be shown as text and as JSON.
package protocol Report {
  /// The JSON document.
  var json: JSONValue { get }
  /// Returns the lines of the text.
  ///
  /// - Parameters:
  ///   - style: The width and the colors of the output.
  ///   - showsAll: Whether to list every item (`-v`).
  func lines(style: TextStyle, showsAll: Bool) -> [String]
  /// The last part of the report, if that part is too long to keep in memory; otherwise `nil`.
  var streamedSection: (any StreamedSection)? { get }
}

extension Report {
  package var streamedSection: (any StreamedSection)? { nil }
}

/// The last part of a report, with elements that are created while they are written. There may be millions.
package protocol StreamedSection {
  /// The name of the document's last member, an array.
  var member: String { get }
  /// Calls a closure with each element of the member.
  ///
  /// - Parameters:
  ///   - failure: Converts a read error to the type that this method throws.
  ///   - body: Writes an element.
  /// - Throws: The converted read error, or the error of `body`.
  func forEachElement<Failure: Error>(
    failure: (KeyhaulError) -> Failure, _ body: (JSONValue) throws(Failure) -> Void) throws(Failure)
  /// Calls a closure with each line of the text. The parameters and errors are those of `forEachElement`.
  func forEachLine<Failure: Error>(
    style: TextStyle, failure: (KeyhaulError) -> Failure, _ body: (String) throws(Failure) -> Void
  ) throws(Failure)
}
