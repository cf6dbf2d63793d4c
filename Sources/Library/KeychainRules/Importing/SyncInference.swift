package import KeychainFormats

/// Decides which items a restore flags as synchronized although the backup does not.
package enum SyncInference {
  /// Returns whether an item is one of Safari's passwords from before synchronization existed: an internet password in
  /// the group of the network layer, with server, protocol and authentication type as text, that is not shared.
  ///
  /// Source: Apple `SecItemDb.c` (`SecItemImportInferSyncable`).
  package static func appliesTo(_ item: KeychainItem) -> Bool {
    item.kind == .internetPassword && item.accessGroup == "com.apple.cfnetwork"
      && item[.server]?.stringValue != nil && item[.protocolType]?.stringValue != nil
      && item[.authenticationType]?.stringValue != nil && (item[.sharingGroup]?.stringValue ?? "").isEmpty
  }
}
