import Foundation
import KeyhaulServing
import KeyhaulTesting
import Testing

let tool = "/usr/bin/idevicebackup2"  // your tool

@Test("The tool backs a phone up", .enabled(if: FileManager.default.isExecutableFile(atPath: tool)))
func backup() throws {
  let phone = try Phone(fixture: "old-phone")
  try phone.serve { address in
    let folder = URL.temporaryDirectory.appending(path: UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let process = Process()
    process.executableURL = URL(filePath: tool)
    process.arguments = ["backup", folder.path]
    process.environment = ["USBMUXD_SOCKET_ADDRESS": address]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }
}
