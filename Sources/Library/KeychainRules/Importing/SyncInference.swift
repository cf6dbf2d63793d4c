import Basics
package import KeychainFormats

/// Which items a restore makes synchronized although their backup doesn't say so.
package enum SyncInference {
  /// Safari's passwords from before there was synchronization: internet passwords in the group of the network layer,
  /// with server, protocol and authentication type as text, not shared.
  ///
  /// Source: Apple `SecItemDb.c` (`SecItemImportInferSyncable`).
  package static func appliesTo(_ item: KeychainItem) -> Bool {
    item.kind == .internetPassword && item.accessGroup == "com.apple.cfnetwork"
      && item[.server]?.stringValue != nil && item[.protocolType]?.stringValue != nil
      && item[.authenticationType]?.stringValue != nil && (item[.sharingGroup]?.stringValue ?? "").isEmpty
  }
}
