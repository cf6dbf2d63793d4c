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
    // A tar has blocks of 512 bytes, so a cut near the end of a block is most likely to be overlooked.
    for endOfBlock in stride(from: 0, to: complete.count, by: 512) {
      lengths.formUnion([max(0, endOfBlock - 1), endOfBlock, endOfBlock + 1])
    }
    lengths.insert(complete.count - 1)
    for length in Cases.chosen(lengths.filter { $0 < complete.count }.sorted(), quick: 60) {
      let error = try failure(opening: Array(complete[..<length]))
      #expect(error != nil, "\(length) of \(complete.count) bytes were accepted as complete")
      #expect(length < 512 || error?.category == .damaged, "\(length): \(error.map(String.init(describing:)) ?? "")")
    }
  }

  @Test("The error for a truncated tar gives the position")
  func errorForTar() throws {
    let endMarkerByteCount = 1024
    let truncated = Array(try SampleBackup().packed(as: .tar).dropLast(endMarkerByteCount))
    let error = try #require(try failure(opening: truncated))
    #expect(error.summary == "the backup is cut short")
    #expect(
      error.reason == "the tar file ends at byte \(HumanReadable.grouped(truncated.count)) without its end marker")
  }

  @Test("The error for a truncated zip names its directory")
  func errorForZip() throws {
    let truncated = Array(try SampleBackup().packed(as: .zip).dropLast())
    let error = try #require(try failure(opening: truncated))
    #expect(error.reason == "the directory at the end of the zip is missing")
  }

  @Test("A container with a flipped bit is read or refused, without a crash (40 of 150 bits in a quick run)")
  func flippedBits() throws {
    let sample = try SampleBackup(hasPassword: false)
    for format in ContainerFormat.allCases {
      let complete = try sample.packed(as: format)
      var random = SeededRandom(seed: 0xF11B)
      for _ in 0..<Cases.count(150, quick: 40) {
        var bytes = complete
        let offset = Int.random(in: 0..<bytes.count, using: &random)
        bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        do {
          _ = try open(bytes).keychainFile(with: sample.keys)
        } catch is KeyhaulError {
          continue
        }
      }
    }
  }

  @Test(
    "A backup with a flipped bit in a metadata file is read or refused, without a crash (60 of 300 bits in a quick run)"
  )
  func flippedBitsOfManifests() throws {
    let sample = try SampleBackup()
    let files = try sample.storedFiles()
    var random = SeededRandom(seed: 7)
    for path in ["Manifest.plist", "Manifest.db", "Status.plist"] {
      let index = try #require(files.firstIndex { $0.path == path })
      for _ in 0..<Cases.count(300, quick: 60) {
        var changedFiles = files
        let offset = Int.random(in: 0..<changedFiles[index].bytes.count, using: &random)
        changedFiles[index].bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        do {
          let archive = try open(packed(changedFiles))
          _ = try archive.fileList(with: sample.keys).listing()
          _ = try archive.keychainFile(with: sample.keys)
        } catch is KeyhaulError {
          continue
        }
      }
    }
  }
}
