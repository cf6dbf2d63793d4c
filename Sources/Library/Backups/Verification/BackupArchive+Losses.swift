import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// What the backup has lost, as far as that can be seen without reading every file: for whoever changes a backup and
  /// does not check it. Clauses for a sentence, such as "2 listed files are not stored"; none where nothing is wrong.
  ///
  /// - Parameter keys: As `fileList(with:)` takes them.
  public func visibleLosses(with keys: borrowing ClassKeys) -> [String] {
    do throws(BackupArchiveError) {
      let list = try fileList(with: keys)
      return try losses(listedIn: list, with: keys)
    } catch {
      return ["its manifest cannot be read: \(error.reason)"]
    }
  }

  private func losses(
    listedIn list: FileList, with keys: borrowing ClassKeys
  ) throws(BackupArchiveError) -> [String] {
    var losses: [String] = []
    let missing = try list.listing(against: try storedFiles()).missingCount
    if missing > 0 {
      losses.append("\(Amounts.count(missing, "listed file")) \(missing == 1 ? "is" : "are") not stored")
    }
    do throws(BackupArchiveError) {
      let reading = try KeychainReading(of: self, in: list, with: keys)
      if reading.notes.contains(.digestDiffers) { losses.append("its keychain file is not what was written") }
    } catch {
      // A backup may be without a keychain.
      if error.code != .noKeychain { losses.append("its keychain cannot be read: \(error.reason)") }
    }
    return losses
  }
}
