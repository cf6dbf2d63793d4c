import Backups
import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Truncated and changed containers")
struct TruncationTests {
  @Test(
    "A container truncated at any length is damaged or refused (60 lengths in a quick run)",
    arguments: ContainerFormat.allCases)
  func truncated(format: ContainerFormat) throws {
    let complete = try SampleBackup(secretByteCount: 3000).packed(as: format)
    var lengths = Set((0..<200).map { $0 * complete.count / 200 })
    // Both sides of each block, at which a tar could end.
    for block in stride(from: 0, to: complete.count, by: 512) {
      lengths.formUnion([block, block + 1, max(0, block - 1)])
    }
    lengths.insert(complete.count - 1)
    for length in Cases.chosen(lengths.filter { $0 < complete.count }.sorted(), quick: 60) {
      let error = try failure(opening: Array(complete[..<length]))
      #expect(error != nil, "\(length) of \(complete.count) bytes were accepted as complete")
      #expect(length < 512 || error?.category == .damaged, "\(length): \(error.map(String.init(describing:)) ?? "")")
    }
  }

  @Test("The error for a truncated container gives the position")
  func wording() throws {
    let complete = try SampleBackup().packed(as: .tar)
    let error = try #require(try failure(opening: Array(complete[..<(complete.count - 1024)])))
    #expect(error.summary == "the backup is cut short")
    #expect(
      error.reason == "the tar file ends at byte \(HumanReadable.grouped(complete.count - 1024)) without its end marker"
    )
    let zip = try SampleBackup().packed(as: .zip)
    let cut = try #require(try failure(opening: Array(zip[..<(zip.count - 1)])))
    #expect(cut.reason == "the directory at the end of the zip is missing")
  }

  @Test(
    "A container with a flipped bit is an error or has the same keychain (40 of 150 bits in a quick run)"
  )
  func flippedBits() throws {
    let sample = try SampleBackup(hasPassword: false)
    for format in ContainerFormat.allCases {
      let complete = try sample.packed(as: format)
      var random = SeededRandom(seed: 0xF11B)
      for _ in 0..<Cases.count(150, quick: 40) {
        var bytes = complete
        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        do {
          _ = try open(bytes).keychainFile(with: sample.keys)
        } catch is KeyhaulError {
          continue
        }
      }
    }
  }

  @Test("A flipped bit in the manifest, its database, or the status does not trap (60 of 300 bits in a quick run)")
  func flippedBitsOfManifests() throws {
    let sample = try SampleBackup()
    let files = try sample.storedFiles()
    var random = SeededRandom(seed: 7)
    for path in ["Manifest.plist", "Manifest.db", "Status.plist"] {
      let index = try #require(files.firstIndex { $0.path == path })
      for _ in 0..<Cases.count(300, quick: 60) {
        var changed = files
        let position = Int.random(in: 0..<changed[index].bytes.count, using: &random)
        changed[index].bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        var tar = TarFixture()
        for file in changed { tar.add(file.path, file.bytes) }
        do {
          let archive = try open(tar.finished())
          let database = try archive.fileList(with: sample.keys)
          _ = try database.listing()
          _ = try archive.keychainFile(with: sample.keys)
        } catch is KeyhaulError {
          continue
        }
      }
    }
  }
}
