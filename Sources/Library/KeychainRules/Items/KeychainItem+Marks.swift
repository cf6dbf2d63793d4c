import Basics
import KeychainFormats

extension KeychainItem {
  /// The item is a reference to what a token holds (`tkid`).
  var hasToken: Bool { self[.tokenID]?.stringValue.map { !$0.isEmpty } ?? (self[.tokenID] != nil) }
  /// The item is a shared group's copy (`ggrp`).
  var isSharedCopy: Bool { self[.sharingGroup]?.stringValue.map { !$0.isEmpty } ?? false }
}
