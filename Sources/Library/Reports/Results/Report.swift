package import KeyhaulKit

/// A result that has a form in text and one in JSON.
package protocol Report {
  var json: JSONValue { get }
  /// - Parameter showsAll: Every item, however many (`-v`).
  func lines(style: TextStyle, showsAll: Bool) -> [String]
  /// The last part of the report, if it is too long to keep in memory; `nil` if it is not.
  var tail: (any StreamedSection)? { get }
}

extension Report {
  package var tail: (any StreamedSection)? { nil }
}

/// The end of a report that may have a million parts: each is made when it is written.
package protocol StreamedSection {
  /// The name of the document's last member, an array.
  var member: String { get }
  /// - Throws: What reading a part throws, translated by `failure`, and what `body` throws.
  func forEachElement<Failure: Error>(
    failure: (KeyhaulError) -> Failure, _ body: (JSONValue) throws(Failure) -> Void) throws(Failure)
  func forEachLine<Failure: Error>(
    style: TextStyle, failure: (KeyhaulError) -> Failure, _ body: (String) throws(Failure) -> Void
  ) throws(Failure)
}
