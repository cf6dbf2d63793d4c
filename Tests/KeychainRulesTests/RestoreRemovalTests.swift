import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules

@Suite("Rows that a restore removes")
struct RestoreRemovalTests {
  private let removedRow: [AttributeCode: ColumnValue] = [
    .synchronizable: .integer(0), .accessGroup: .text("keyhaul"), .sharingGroup: .text([]),
  ]

  @Test("A restore removes rows that are not synchronized, not in a preserved group and not shared copies")
  func rows() {
    #expect(RestoreRemoval.removes(removedRow))
    #expect(!RestoreRemoval.removes(removedRow.merging([.synchronizable: .integer(1)]) { $1 }))
    #expect(!RestoreRemoval.removes(removedRow.merging([.sharingGroup: .text("family")]) { $1 }))
    #expect(RestoreRemoval.removes(removedRow.merging([.accessGroup: .text("com.apple.security.octagon2")]) { $1 }))
    for group in RestoreRemoval.preservedAccessGroups {
      #expect(!RestoreRemoval.removes(removedRow.merging([.accessGroup: .text(group)]) { $1 }))
    }
  }

  @Test("A restore keeps rows with NULL in a column of the condition")
  func nulls() {
    for column in [AttributeCode.synchronizable, .sharingGroup] {
      #expect(!RestoreRemoval.removes(removedRow.merging([column: .null]) { $1 }))
    }
  }
}
