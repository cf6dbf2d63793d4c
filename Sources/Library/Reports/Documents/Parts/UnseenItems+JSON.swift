package import KeyhaulKit

extension UnseenItems {
  /// The member of every document about what is in a backup.
  package static var field: (String, JSONValue) { ("cannot_show", PlanDocument.CannotShow.unseenItems.json) }
}
