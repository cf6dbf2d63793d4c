package import Basics

/// A decrypted copy of a backup, and the files that are not in it.
package struct DecryptedBackup: Sendable {
  /// The copy. Its `unrelatedFiles` include payloads that are not listed.
  package let copy: RewrittenBackup
  /// The number of decrypted files.
  package let decryptedCount: Int
  /// The unreadable files with the reasons. They are listed in the copy but not stored.
  package let faults: [Fault]
  /// The number of listed files without an identifier, whose payloads cannot be found and are not in the copy.
  package let rowWithoutIdentifierCount: Int

  /// The files whose content does not match their digest in the list, which is kept.
  package let differing: [ListedFile]

  /// Whether all listed files are in the copy and match their digests.
  package var isComplete: Bool { faults.isEmpty && rowWithoutIdentifierCount == 0 && differing.isEmpty }

  /// A file that is not in the copy.
  package struct Fault: Sendable, Equatable {
    /// The stored name.
    package let fileIdentifier: String
    /// The reason why it is unreadable.
    package let error: KeyhaulError
  }
}
