import Backups
import Basics
import KeychainFormats
import KeychainRules

/// A list of expectations from a file (format `plan-expectations/1`).
///
/// ```json
/// { "format": "plan-expectations/1",
///   "expectations": [
///     { "service": "chat.example", "account": "anna", "expect": "migrates", "password": true },
///     { "service": "chat.example", "account": "push *", "expect": "stays-behind", "reason": "device-bound",
///       "same_device": false },
///     { "kind": "key", "label": "*", "expect": "absent" } ] }
/// ```
/// `*` stands for any text. Without `password` and `same_device`, an expectation applies to all four restores. An
/// unknown member is an error, because an ignored typing mistake would widen the expectation.
package struct PlanExpectations: Sendable {
  /// The name of the format.
  package static let formatName = "plan-expectations/1"

  /// The maximum number of values in a list, including all members.
  package static let maximumValueCount = 1_000_000

  /// The expectations in the order of the list.
  package let expectations: [PlanExpectation]

  /// Reads a list. Requires strict JSON without unknown or repeated members or values of a wrong type.
  ///
  /// - Throws: `.malformedExpectations` with the position, and with the similar word that was probably
  ///   intended.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    let value: JSONValue
    do throws(JSONParseError) {
      value = try JSONValue(parsing: bytes, acceptingAtMost: Self.maximumValueCount)
    } catch {
      throw .malformedExpectations(error.reason + (error.location(in: bytes).map { " (\($0))" } ?? ""))
    }
    let list = try ExpectationMembers(value, at: [], in: bytes)
    try list.allow(["format", "expectations"])
    let format = try list.required("format").string()
    guard format == Self.formatName else {
      throw list.fault("its format is \(UntrustedText.quoted(format)); Keyhaul reads \(Self.formatName)", at: "format")
    }
    let elements = try list.required("expectations").array()
    guard !elements.isEmpty else {
      throw list.fault(
        "it contains no expectations, so every plan meets it", at: "expectations")
    }
    var expectations: [PlanExpectation] = []
    for (index, element) in elements.enumerated() {
      let path: [JSONPathComponent] = [.member("expectations"), .element(index)]
      expectations.append(try PlanExpectation(ExpectationMembers(element, at: path, in: bytes)))
    }
    self.expectations = expectations
  }
}

extension PlanExpectation {
  fileprivate init(_ members: ExpectationMembers) throws(KeyhaulError) {
    try members.allow(
      ["kind", "label", "account", "service", "server", "access_group", "expect", "reason", "password", "same_device"])
    var matcher = ItemMatcher()
    matcher.kind = try members.keyword(
      "kind", elseReport: "is not a kind", among: ItemKind.allCases, by: \.reportName)
    matcher.label = try members.pattern("label")
    matcher.account = try members.pattern("account")
    matcher.service = try members.pattern("service")
    matcher.server = try members.pattern("server")
    matcher.accessGroup = try members.pattern("access_group")
    guard matcher != ItemMatcher() else { throw members.fault("it selects no item: add service, account, kind …") }
    // `keyword` does not report a missing member.
    _ = try members.required("expect")
    guard
      let outcome = try members.keyword(
        "expect", elseReport: "cannot be expected", among: Self.outcomes, by: \.rawValue)
    else { throw members.fault("it expects nothing") }
    let reason = try members.keyword(
      "reason", elseReport: "is not a reason", hint: "explain lists them", among: Reason.allCases, by: \.rawValue)
    guard reason == nil || outcome == .staysBehind else { throw members.fault("only stays-behind can have a reason") }
    self.init(
      matcher, outcome, reason: reason, hasPassword: try members.flag("password"),
      onSameDevice: try members.flag("same_device"))
  }
}

/// The members of the list or of an expectation, with their position for errors.
private struct ExpectationMembers {
  private let fields: [(String, JSONValue)]
  /// The path from the list to the object.
  private let path: [JSONPathComponent]
  /// The bytes of the list.
  private let bytes: [UInt8]

  init(_ value: JSONValue, at path: [JSONPathComponent], in bytes: [UInt8]) throws(KeyhaulError) {
    (self.fields, self.path, self.bytes) = (value.fields ?? [], path, bytes)
    guard value.fields != nil else { throw fault("it should be an object, not \(value.typeName)") }
  }

  /// - Parameters:
  ///   - member: The name of the wrong member; `nil` means the object itself.
  ///   - word: The similar word that was probably intended.
  func fault(_ reason: String, at member: String? = nil, near word: String? = nil) -> KeyhaulError {
    .malformedExpectations("\(location(of: member)): \(reason)", near: word)
  }

  /// Returns a position: "expectation 2, line 7", or "the list, line 1" for a member of the list.
  private func location(of member: String?) -> String {
    let owner = if case .element(let index) = path.last { "expectation \(index + 1)" } else { "the list" }
    let line = JSONValue.line(of: path + (member.map { [.member($0)] } ?? []), in: bytes)
    return owner + (line.map { ", line \($0)" } ?? "")
  }

  private func unknownWord(
    _ word: String, at member: String, problem: String, hint: String? = nil, among knownWords: [String]
  ) -> KeyhaulError {
    let clause = "\(UntrustedText.quoted(word)) \(problem)"
    guard let similarWord = EditDistance.nearest(to: word, among: knownWords) else {
      return fault("\(clause); \(hint ?? "known are \(HumanReadable.list(knownWords))")", at: member)
    }
    return fault("\(clause); \"\(similarWord)\" is similar", at: member, near: similarWord)
  }

  /// Checks that the object has no other members.
  func allow(_ names: [String]) throws(KeyhaulError) {
    guard let name = fields.map(\.0).first(where: { !names.contains($0) }) else { return }
    throw unknownWord(name, at: name, problem: "is not a known member", among: names.sorted())
  }

  struct Member {
    let name: String
    let value: JSONValue
    let members: ExpectationMembers

    func string() throws(KeyhaulError) -> String {
      guard let text = value.stringValue else { throw mistyped("a string") }
      return text
    }

    func array() throws(KeyhaulError) -> [JSONValue] {
      guard let elements = value.arrayValue else { throw mistyped("an array") }
      return elements
    }

    func boolean() throws(KeyhaulError) -> Bool {
      guard let flag = value.booleanValue else { throw mistyped("true or false") }
      return flag
    }

    private func mistyped(_ type: String) -> KeyhaulError {
      members.fault("\"\(name)\" should be \(type), not \(value.typeName)", at: name)
    }
  }

  private func member(_ name: String) -> Member? {
    fields.first { $0.0 == name }.map { Member(name: name, value: $0.1, members: self) }
  }

  func required(_ name: String) throws(KeyhaulError) -> Member {
    guard let member = member(name) else { throw fault("it has no \"\(name)\"") }
    return member
  }

  func pattern(_ name: String) throws(KeyhaulError) -> GlobPattern? {
    guard let member = member(name) else { return nil }
    return GlobPattern(try member.string())
  }

  func flag(_ name: String) throws(KeyhaulError) -> Bool? { try member(name)?.boolean() }

  /// Returns the value that the word in a member stands for; `nil` if there is no such member.
  ///
  /// - Parameters:
  ///   - problem: The end of the error about an unknown word, such as "is not a kind".
  ///   - hint: Replaces the list of known words in the error if that would be too long.
  func keyword<Value>(
    _ name: String, elseReport problem: String, hint: String? = nil, among values: [Value],
    by spelling: (Value) -> String
  ) throws(KeyhaulError) -> Value? {
    guard let word = try member(name)?.string() else { return nil }
    guard let value = values.first(where: { spelling($0) == word }) else {
      throw unknownWord(word, at: name, problem: problem, hint: hint, among: values.map(spelling))
    }
    return value
  }
}

extension KeyhaulError {
  /// - Parameter word: The similar word that was probably intended.
  fileprivate static func malformedExpectations(_ reason: String, near word: String? = nil) -> KeyhaulError {
    let example =
      #"{"format": "\#(PlanExpectations.formatName)", "expectations": [{"service": "…", "expect": "migrates"}]}"#
    return KeyhaulError(
      .malformedExpectations, .usage, "the file is not a list of expectations", reason: reason,
      advice: .words(word.map { "\"\($0)\" in its place" } ?? example))
  }
}
