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
      // The secret starts with a letter, because CSV has a secret that may be a formula only as base64.
      let outcome = try sandbox.run(
        """
        keyhaul device create d &&
        { printf s; head -c 300 /dev/urandom | base64 -w 0 | head -c 399; } > secret &&
        keyhaul item add d --service planted --account a --secret-file secret
        """)
      #expect(outcome.status == 0, "\(outcome)")
      return sandbox
    }

    /// Returns a part of the secret, as text and as base64, which must not be in memory.
    private func needles(in sandbox: DeviceSandbox) throws -> [SensitiveBytes] {
      let file = open(sandbox.home.appending(path: "secret").path, O_RDONLY)
      defer { close(file) }
      var count = 0
      let text = SensitiveBytes(count: 400) { count = read(file, $0.baseAddress, $0.count) }
      try #require(count == 400)
      var digits = SensitiveBuffer()
      text.withBytes { Base64Digits.forEach(of: $0) { digits.append($0) } }
      // Uses the middle, because freed memory may be overwritten at its beginning.
      func middle(_ bytes: UnsafeRawBufferPointer) -> SensitiveBytes {
        SensitiveBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[180..<220]))
      }
      return [text.withBytes(middle), digits.withBytes(middle)]
    }

    /// Runs a command like the program, and writes its result to a file descriptor. No object of the run stays in memory.
    @inline(never)
    private func run(_ arguments: [String], in sandbox: DeviceSandbox, to output: Int32) throws -> CommandExitStatus {
      let parsed = try Keyhaul.parseAsRoot(arguments + ["--home", sandbox.devices.path])
      let command = try #require(parsed as? any RunnableCommand)
      let session = Session(common: command.common, environment: [:], output: output, errors: 2, terminalPath: "/none")
      let status = try command.run(in: session)
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
      let needles = try needles(in: sandbox)
      let result = sandbox.home.appending(path: "result").path
      let stream = open(sandbox.home.appending(path: "stream").path, O_WRONLY | O_CREAT, 0o600)
      defer { close(stream) }
      let arguments = line.split(separator: " ").map { $0 == "OUT" ? result : String($0) } + ["-q"]
      #expect(try run(arguments, in: sandbox, to: stream) == .ok)
      // Another process searches the result, so that the secret does not get into the memory of this process.
      let text = try sandbox.run("cat result stream 2> /dev/null | grep -c -F -f secret")
      let base64 = try sandbox.run("cat result stream 2> /dev/null | grep -c -F -e \"$(base64 -w 0 secret)\"")
      #expect(text.output == "1\n", "\(text)")
      #expect(base64.output == (line.contains("json") ? "1\n" : "0\n"), "\(base64)")
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
    }

    @Test("A text made from a secret is found in memory, and not after it is overwritten")
    func control() throws {
      let sandbox = try sandbox()
      let needles = try needles(in: sandbox)
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
      var copy = needles[0].withBytes { Array($0) }
      #expect(try ProcessMemory.counts(of: needles) == [1, 0])
      copy.withUnsafeMutableBytes { wipe($0) }
      #expect(try ProcessMemory.counts(of: needles) == [0, 0])
    }
  }

  /// The memory of this process.
  private enum ProcessMemory {
    /// Returns how often each byte string occurs in writable memory, without its own storage and the scanner's buffer.
    static func counts(of needles: [SensitiveBytes]) throws -> [Int] {
      // Larger than a needle, which has 40 bytes.
      let overlap = 64
      let bufferSize = UInt(MemoryScan.chunkSize + overlap)
      let ownAddresses = needles.map { $0.withBytes { UInt(bitPattern: $0.baseAddress) } }
      var addresses = needles.map { _ in Set<UInt>() }
      try MemoryScan.forEachChunk(of: getpid(), overlap: overlap) { chunkAddress, chunk in
        let bufferStart = UInt(bitPattern: chunk.baseAddress)
        let bufferAddresses = bufferStart..<(bufferStart + bufferSize)
        for (index, needle) in needles.enumerated() {
          let offsets = needle.withBytes { MemoryScan.offsets(of: $0, in: chunk) }
          let occurrences = offsets.map { chunkAddress + UInt($0) }
          addresses[index].formUnion(occurrences.filter { $0 != ownAddresses[index] && !bufferAddresses.contains($0) })
        }
      }
      return addresses.map(\.count)
    }
  }
#endif
