package import KeyhaulKit

extension JSONValue {
  /// The fields that name an item in every report.
  package static func identity(_ identity: ItemIdentity) -> [(String, JSONValue)] {
    [
      ("kind", .string(identity.kind.reportName)), ("label", .text(identity.label)),
      ("account", .text(identity.account)), ("service", .text(identity.service)), ("server", .text(identity.server)),
      ("access_group", .text(identity.accessGroup)),
    ]
  }
}
