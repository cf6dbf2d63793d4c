/// Which files of the list a payload is, looked up as the payloads come by. Not to be used from two threads at once.
final class PayloadFiles {
  private let list: FileList
  private let index: FileIndex
  private var reader: FileList.Reader?
  /// What the list could not be read for, which is no fault of a payload.
  private(set) var failure: BackupArchiveError?

  /// - Parameter index: The places of the files that have a payload.
  init(_ list: FileList, _ index: FileIndex) {
    self.list = list
    self.index = index
  }

  func files(of identifier: String) throws(BackupArchiveError) -> [ListedFile] {
    do throws(BackupArchiveError) {
      let reader = if let reader { reader } else { try list.reader() }
      self.reader = reader
      var files: [ListedFile] = []
      for place in index.places(of: identifier) {
        if let file = try reader.file(at: place) { files.append(file) }
      }
      return files
    } catch {
      failure = error
      throw error
    }
  }
}
