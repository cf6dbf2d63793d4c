import Basics
import Foundation
import TestSupport
import Testing
import VirtualDevice

@Suite("Leftover temporary device folders")
struct TemporaryDeviceLeftoverTests {
  @Test("The next run removes the device folder of a killed process, but not that of a running one")
  func leftovers() throws {
    let directory = try TemporaryDirectory()
    let names = (0..<4).map { _ in "keyhaul-devices-\(UUID().uuidString)" }
    for name in names {
      try directory.write([1], to: "\(name)/phone/device.json")
      try directory.write([], to: "\(name)/.in-use")
    }
    try directory.write([1], to: "keyhaul-devices-notes/text")
    try directory.write([1], to: "keyhaul-\(UUID().uuidString)/text")
    // A running process locks its folder.
    let system = FileSystem.real
    let running = try system.openLockFile(directory.path("\(names[3])/.in-use"))
    let isLocked = system.claim(running)
    #expect(isLocked)
    let home = try TemporaryDeviceSet(inside: directory.path)
    let remaining = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    #expect(remaining.count == 4, "\(remaining)")
    #expect(remaining.contains(names[3]) && remaining.contains("keyhaul-devices-notes"), "\(remaining)")
    #expect(FileManager.default.fileExists(atPath: home.devices.path))
    system.unclaim(running)
    withExtendedLifetime(home) {}
  }
}
