package import Basics
import KeychainFormats

extension PlanDocument {
  /// What is said of a plan whose items come from another tool's dump.
  public struct Dump: Sendable, Equatable {
    /// The form that was recognized (`DumpForm`).
    public var form: String
    /// That its items were in clear.
    public var sentence: String
    /// What is not known of the items, or was assumed, one sentence each.
    public var unknown: [String]

    /// Creates what is said of a dump.
    public init(form: String, sentence: String, unknown: [String]) {
      self.form = form
      self.sentence = sentence
      self.unknown = unknown
    }
  }
}

extension PlanDocument.Dump {
  package var json: JSONValue {
    ["form": .string(form), "sentence": .string(sentence), "unknown": .array(unknown.map { .string($0) })]
  }

  init(_ node: JSONNode) throws(JSONNode.Fault) {
    form = try node.member("form").string()
    sentence = try node.member("sentence").string()
    unknown = []
    for sentence in try node.member("unknown").elements() { unknown.append(try sentence.string()) }
  }
}
