import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainRules

@Suite("What a restore removes")
struct RestoreRemovals {
  private let plain: [AttributeCode: ColumnValue] = [
    .synchronizable: .integer(0), .accessGroup: .text("keyhaul"), .sharingGroup: .text([]),
  ]

  @Test("is a row that is not synchronised, not of a kept group and no shared copy")
  func rows() {
    #expect(RestoreRemoval.removes(plain))
    #expect(!RestoreRemoval.removes(plain.merging([.synchronizable: .integer(1)]) { $1 }))
    #expect(!RestoreRemoval.removes(plain.merging([.sharingGroup: .text("family")]) { $1 }))
    #expect(RestoreRemoval.removes(plain.merging([.accessGroup: .text("com.apple.security.octagon2")]) { $1 }))
    for group in RestoreRemoval.keptAccessGroups {
      #expect(!RestoreRemoval.removes(plain.merging([.accessGroup: .text(group)]) { $1 }))
    }
  }

  @Test("is no row with a NULL in one of the columns that are asked")
  func nulls() {
    for column in [AttributeCode.synchronizable, .sharingGroup] {
      #expect(!RestoreRemoval.removes(plain.merging([column: .null]) { $1 }))
    }
  }
}
