public import ArchivedKeychain
import KeychainFormats
public import KeychainRules

/// What someone expects of a plan for the items that a matcher means.
public struct PlanExpectation: Sendable, Hashable {
  /// The fates that can be expected.
  public static let fates: [ItemFate] = [.migrates, .staysBehind, .absent]

  /// Which items are meant; all of them have to meet the expectation.
  public var matcher: ItemMatcher
  /// One of `fates`.
  public let fate: ItemFate
  /// Why it stays behind, where that matters too.
  public var reason: Reason?

  /// Creates an expectation.
  public init(_ matcher: ItemMatcher, _ fate: ItemFate, reason: Reason? = nil) {
    self.matcher = matcher
    self.fate = fate
    self.reason = reason
  }

  /// An expectation that a plan does not meet.
  public struct Miss: Sendable, Hashable {
    /// The expectation that is not met.
    public let expectation: PlanExpectation
    /// What the plan decides about an item that is meant; `nil` where none is known to be.
    public let decision: MigrationPlan.Decision?
    /// How many sealed items may be meant, whose names are not known.
    public let sealedCount: Int
  }

  /// The decisions that are not as expected: those of each item that is meant, or that there is none.
  ///
  /// A sealed item has no names. What is expected of all that a star means, or that there is nothing, is not known to be
  /// so where a sealed item may be meant that is not as expected.
  public func misses(in plan: MigrationPlan) -> [Miss] {
    let found = plan.decisions(for: matcher)
    var misses = found.filter { !isMet(by: $0.outcome) }.map { Miss(expectation: self, decision: $0, sealedCount: 0) }
    let isMissing = found.isEmpty && fate != .absent
    let sealedCount = plan.decisions.count {
      matcher.mayMean($0.identity) && (isMissing || !isMet(by: $0.outcome))
    }
    if isMissing || sealedCount > 0 && (fate == .absent || matcher.canMatchSeveral) {
      misses.append(Miss(expectation: self, decision: nil, sealedCount: sealedCount))
    }
    return misses
  }

  private func isMet(by outcome: MigrationPlan.Outcome) -> Bool {
    switch (fate, outcome) {
    case (.migrates, .migrates): true
    case (.staysBehind, .staysBehind(let why)): reason == nil || reason == why
    case (.migrates, _), (.staysBehind, _), (.unreadable, _), (.absent, _), (.ambiguous, _): false
    }
  }
}

extension MigrationPlan {
  /// What is not as expected, in the order of the expectations; none where the plan is as it should be.
  public func misses(of expectations: [PlanExpectation]) -> [PlanExpectation.Miss] {
    expectations.flatMap { $0.misses(in: self) }
  }
}

/// A list of expectations as it stands in a file (format `plan-expectations/1`).
///
/// ```json
/// { "format": "plan-expectations/1",
///   "expectations": [
///     { "service": "chat.example", "account": "anna", "expect": "migrates" },
///     { "service": "chat.example", "account": "push *", "expect": "stays-behind", "reason": "device-bound" },
///     { "kind": "key", "label": "*", "expect": "absent" } ] }
/// ```
/// `*` stands for any text. A member that is not known is an error, so that a mistyped one does not widen an expectation.
public struct PlanExpectations: Decodable, Sendable {
  /// The format's name, as a list and its schema spell it.
  public static let formatName = "plan-expectations/1"

  /// The expectations in the list's order.
  public let expectations: [PlanExpectation]

  private struct Member: CodingKey, Hashable {
    let stringValue: String
    let intValue: Int? = nil

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
  }

  public init(from decoder: any Decoder) throws {
    let root = try decoder.container(keyedBy: Member.self)
    try Self.allow(["format", "expectations"], in: root)
    let format = try root.decode(String.self, forKey: Member("format"))
    guard format == Self.formatName else {
      throw Self.fault(root, "its format is \(format); \(Self.formatName) is read")
    }
    var list = try root.nestedUnkeyedContainer(forKey: Member("expectations"))
    var expectations: [PlanExpectation] = []
    while !list.isAtEnd { expectations.append(try Self.expectation(list.nestedContainer(keyedBy: Member.self))) }
    guard !expectations.isEmpty else { throw Self.fault(root, "it expects nothing, which every plan meets") }
    self.expectations = expectations
  }

  private static func expectation(_ members: KeyedDecodingContainer<Member>) throws -> PlanExpectation {
    try allow(["kind", "label", "account", "service", "server", "access_group", "expect", "reason"], in: members)
    func text(_ name: String) throws -> String? { try members.decodeIfPresent(String.self, forKey: Member(name)) }
    func pattern(_ name: String) throws -> ItemPattern? { try text(name).map(ItemPattern.init) }
    let matcher = ItemMatcher(
      kind: try text("kind").map { name in
        guard let kind = ItemKind.allCases.first(where: { $0.reportName == name }) else {
          throw unknown(name, "is no kind", among: ItemKind.allCases.map(\.reportName), in: members)
        }
        return kind
      },
      label: try pattern("label"), account: try pattern("account"), service: try pattern("service"),
      server: try pattern("server"), accessGroup: try pattern("access_group"))
    guard matcher != ItemMatcher() else { throw fault(members, "it names no item: give service, account, kind …") }
    let word = try members.decode(String.self, forKey: Member("expect"))
    guard let fate = PlanExpectation.fates.first(where: { $0.rawValue == word }) else {
      throw unknown(word, "cannot be expected", among: PlanExpectation.fates.map(\.rawValue), in: members)
    }
    let reason = try text("reason").map { name in
      guard fate == .staysBehind else { throw fault(members, "only what stays-behind has a reason") }
      guard let reason = Reason(rawValue: name) else {
        throw unknown(
          name, "is no reason", "explain lists them", among: Reason.allCases.map(\.rawValue), in: members)
      }
      return reason
    }
    return PlanExpectation(matcher, fate, reason: reason)
  }

  private static func allow(_ names: Set<String>, in members: KeyedDecodingContainer<Member>) throws {
    guard let name = members.allKeys.map(\.stringValue).filter({ !names.contains($0) }).min() else { return }
    throw unknown(name, "is not known here", among: names.sorted(), in: members)
  }

  /// A word in the place of one that is known: whoever shows the error may say which of them was meant.
  package struct UnknownWord: Error {
    package let word: String
    package let known: [String]
    /// "acount is not known here"
    package let finding: String
  }

  /// - Parameter hint: What is known, where a list of it would be too long.
  private static func unknown(
    _ word: String, _ finding: String, _ hint: String? = nil, among known: [String],
    in members: KeyedDecodingContainer<Member>
  ) -> DecodingError {
    let error = UnknownWord(word: word, known: known, finding: "\(word) \(finding)")
    let reason = "\(error.finding); \(hint ?? "known are \(Amounts.list(known))")"
    return DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: members.codingPath, debugDescription: reason, underlyingError: error))
  }

  private static func fault(_ members: KeyedDecodingContainer<Member>, _ reason: String) -> DecodingError {
    DecodingError.dataCorrupted(DecodingError.Context(codingPath: members.codingPath, debugDescription: reason))
  }
}
