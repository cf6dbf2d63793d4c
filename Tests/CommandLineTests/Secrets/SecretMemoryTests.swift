@testable import keyhaul

#if os(Linux)
  import ArgumentParser
  import Foundation
  import Glibc
  import KeyhaulKit
  import Testing

  @Suite("Shown secrets in memory", .serialized)
  struct SecretMemoryTests {
    /// A sandbox with one item whose secret was only in the memory of a shell and its child processes.
    private func sandbox() throws -> DeviceSandbox {
      let sandbox = try DeviceSandbox()
      let outcome = try sandbox.run(
        "keyhaul device create d"
          // A letter first: what a table would compute with stands in it as base64 alone.
          + " && { printf s; head -c 300 /dev/urandom | base64 -w 0 | head -c 399; } > secret"
          + " && keyhaul item add d --service planted --account a --secret-file secret")
      #expect(outcome.status == 0, "\(outcome)")
      return sandbox
    }

    /// Parts of the secret as text and as base64 that no memory may hold.
    private func needles(_ sandbox: DeviceSandbox) throws -> [SensitiveBytes] {
      let file = open(sandbox.home.appending(path: "secret").path, O_RDONLY)
      defer { close(file) }
      var count = 0
      let text = SensitiveBytes(count: 400) { count = read(file, $0.baseAddress, $0.count) }
      try #require(count == 400)
      var digits = SensitiveBuffer()
      text.withBytes { Base64Digits.forEach(of: $0) { digits.append($0) } }
      // From the middle: what is freed may have other things at its beginning.
      func middle(_ bytes: UnsafeRawBufferPointer) -> SensitiveBytes {
        SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[180..<220]))
      }
      return [text.withBytes(middle), digits.withBytes(middle)]
    }

    /// Runs a verb as the program does, with its result on a pipe's end or in a file; nothing of it lives on.
    @inline(never)
    private func run(_ arguments: [String], in sandbox: DeviceSandbox, to output: Int32) throws -> CommandExitStatus {
      let parsed = try Keyhaul.parseAsRoot(arguments + ["--home", sandbox.devices.path])
      let verb = try #require(parsed as? any RunnableCommand)
      let session = Session(common: verb.common, environment: [:], output: output, errors: 2, terminalPath: "/none")
      let status = try verb.run(in: session)
      try session.flush()
      return status
    }

    static let lines = [
      "item find d --service planted --reveal", "item find d --service planted --reveal --json",
      "item find d --service planted --reveal --format csv", "item find d --reveal --service planted -o OUT",
      "item find d --reveal --json -o OUT", "item find d --reveal --format csv -o OUT",
      "export d --reveal --format json -o OUT", "export d --reveal --format csv -o OUT",
      "export d --reveal --format json -o -", "export d --reveal --format csv -o -",
    ]

    @Test("A shown secret is not in memory afterwards, in any format and destination", arguments: lines)
    func scan(line: String) throws {
      let sandbox = try sandbox()
      let needles = try needles(sandbox)
      let result = sandbox.home.appending(path: "result").path
      let stream = open(sandbox.home.appending(path: "stream").path, O_WRONLY | O_CREAT, 0o600)
      defer { close(stream) }
      let arguments = line.split(separator: " ").map { $0 == "OUT" ? result : String($0) } + ["-q"]
      #expect(try run(arguments, in: sandbox, to: stream) == .ok)
      // It was shown, as another process finds.
      let shown = try sandbox.run("cat result stream 2> /dev/null | grep -c -F -f secret || true").output
      let encoded = try sandbox.run("cat result stream 2> /dev/null | grep -c -F -e \"$(base64 -w 0 secret)\" || true")
        .output
      #expect(shown == "1\n" && (encoded == "1\n") == line.contains("json"), "\(shown) \(encoded)")
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
    }

    @Test("A text made from a secret is found in memory, and not after it is overwritten")
    func control() throws {
      let sandbox = try sandbox()
      let needles = try needles(sandbox)
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
      var copy = needles[0].withBytes { Array($0) }
      #expect(try ProcessMemory.counts(of: needles) == [1, 0])
      copy.withUnsafeMutableBytes { wipe($0) }
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
    }
  }

  /// The memory of this process, as `/proc/self/mem` gives it.
  private enum ProcessMemory {
    /// Returns how often each byte string occurs in writable memory, without its own storage and the scanner's.
    static func counts(of needles: [SensitiveBytes]) throws -> [Int] {
      let chunk = 1 << 20
      let overlap = 64
      let memory = open("/proc/self/mem", O_RDONLY)
      guard memory >= 0 else { throw CocoaError(.fileReadNoPermission) }
      defer { close(memory) }
      let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: chunk + overlap, alignment: 4096)
      defer {
        wipe(scratch)
        scratch.deallocate()
      }
      let own = needles.map { $0.withBytes { UInt(bitPattern: $0.baseAddress) } }
      let excluded =
        UInt(bitPattern: scratch.baseAddress)..<(UInt(bitPattern: scratch.baseAddress) + UInt(scratch.count))
      var places = needles.map { _ in Set<UInt>() }
      for region in try MemoryScan.regions(of: getpid()) {
        var address = region.lowerBound
        while address < region.upperBound {
          let wanted = min(UInt(chunk + overlap), region.upperBound - address)
          let count = pread(memory, scratch.baseAddress, Int(wanted), off_t(address))
          if count > 0 {
            for (number, needle) in needles.enumerated() {
              let found = needle.withBytes {
                MemoryScan.offsets(of: $0, in: UnsafeRawBufferPointer(rebasing: scratch[..<count]))
              }
              places[number].formUnion(found.map { address + UInt($0) })
            }
          }
          address += UInt(chunk)
        }
      }
      return zip(places, own).map { places, own in places.count { $0 != own && !excluded.contains($0) } }
    }
  }
#endif
