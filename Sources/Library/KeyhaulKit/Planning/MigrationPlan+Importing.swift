import Backups
import Basics
import KeychainFormats
package import KeychainRules

extension MigrationPlan {
  /// The item that an import brings, as it is stored where nothing is in its way. One of the archive's is settled again each
  /// time, and opened where the archive holds none.
  ///
  /// - Throws: Where the archive's private copy is not given again by the system.
  package func incoming(_ planned: PlannedImport) throws(MigrationError) -> IncomingItem {
    switch planned.origin {
    case .preserved(let incoming): return incoming
    case .archive(let place):
      return try reporting { () throws(KeychainRuleError) in
        let (archived, item) = try items[Int(place)].openedAgain()
        return try IncomingItem(again: item, persistentReference: archived.persistentReference)
      }
    }
  }

  /// The kind of the item that an import brings.
  func kind(of planned: PlannedImport) -> ItemKind {
    switch planned.origin {
    case .preserved(let incoming): incoming.item.kind
    case .archive(let place): items[Int(place)].kind
    }
  }

  /// What is said of an import that would not do what the plan says.
  package func difference(at planned: PlannedImport) -> String {
    switch planned.origin {
    case .archive(let place): "item \(items[Int(place)].index) would not be restored as planned"
    case .preserved: "an item of the system would not be restored as planned"
    }
  }
}
