import KeyhaulKit

extension ArchiveFinding {
  /// What was found, where, and whether something is lost by it or a restore refuses it.
  var json: JSONValue {
    [
      "id": .string(kind.rawValue), "place": .string(place), "detail": .string(fact), "lost": .boolean(isLoss),
      "restorable": .boolean(!forbids(.restoring)),
    ]
  }
}
