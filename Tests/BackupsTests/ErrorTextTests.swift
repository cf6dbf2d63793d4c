import Backups
import Basics
import KeychainFormats
import Testing

@Suite("Texts of backup errors")
struct ErrorTextTests {
  @Test(
    "An error has a short lower-case summary and advice, without periods", arguments: KeyhaulError.Code.ofBackup)
  func shape(code: KeyhaulError.Code) {
    let error = KeyhaulError(code, "the fact")
    for text in [error.summary, error.advice] {
      #expect(!text.isEmpty && text.utf8.count <= 100)
      #expect(text.first?.isLowercase == true)
      #expect(!text.hasSuffix(".") && !text.contains("please"))
    }
    #expect(error.description == "\(error.summary): the fact")
  }

  @Test("Each backup error has the expected category")
  func categories() {
    let expected: [(KeyhaulError.Code, ErrorCategory)] = [
      (.notFound, .notFound), (.notABackup, .refused), (.unsupported, .refused), (.sealedList, .refused),
      (.hostile, .refused),
      (.overLimit, .refused), (.truncated, .damaged), (.damaged, .damaged), (.unfinished, .damaged),
      (.manifestMissing, .damaged),
      (.payloadMissing, .damaged), (.noKeychain, .refused), (.notStreamable, .refused),
      (.keyUnavailable, .wrongPassword),
      (.changed, .failed), (.unreadable, .failed), (.unwritable, .failed),
      (.noSpace, .failed), (.noTemporarySpace, .failed),
      (.interrupted, .failed), (.occupied, .usage), (.falseClaim, .refused), (.decryptedCopy, .refused),
      (.passwordDenied, .refused), (.streamBroken, .failed), (.libraryMissing, .failed), (.busy, .busy),
    ]
    #expect(expected.count == KeyhaulError.Code.ofBackup.count)
    for (code, category) in expected { #expect(KeyhaulError(code, "").category == category) }
  }

  @Test(
    "Each tolerated anomaly has a description",
    arguments: [
      (ToleratedAnomaly.statusMissing, "there is no Status.plist to show that the backup was finished"),
      (
        .encryptionNotStated, "Manifest.plist does not say whether there is a password; Keyhaul looks at its contents"
      ),
      (
        .encryptionClaimed,
        "Manifest.plist says that the backup is encrypted, but its manifest is not, and no file has a key"
      ),
      (.databaseUnpadded, "the manifest database was encrypted without padding"),
      (.databaseInWriteAheadMode, "the manifest database was left in write-ahead mode"),
      (.listJournalRead(name: "Manifest.db-wal"), "part of the manifest comes from its log, Manifest.db-wal"),
      (
        .listJournalRead(name: "Manifest.db-journal"),
        "the manifest is read as it was before an unfinished change, which Manifest.db-journal undoes"
      ),
      (
        .sizeDiffers(recorded: 1_234_567, found: 999),
        "the manifest records 1,234,567 bytes for the keychain file, which has 999"
      ),
      (.digestDiffers, "the digest recorded for the keychain file does not match"),
      (
        .unfinished(state: "moving"),
        "the device never finished the backup: Status.plist says \"moving\", not \"finished\""
      ),
    ])
  func anomalies(anomaly: ToleratedAnomaly, text: String) { #expect(anomaly.description == text) }
}
