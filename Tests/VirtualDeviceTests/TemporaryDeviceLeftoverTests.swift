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
    let runningLock = try system.openLockFile(directory.path("\(names[3])/.in-use"))
    let isLocked = system.claim(runningLock)
    #expect(isLocked)
    let home = try TemporaryDeviceSet(inside: directory.path)
    let remainingNames = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    #expect(remainingNames.count == 4, "\(remainingNames)")
    #expect(remainingNames.contains(names[3]) && remainingNames.contains("keyhaul-devices-notes"), "\(remainingNames)")
    #expect(FileManager.default.fileExists(atPath: home.devices.path))
    system.unclaim(runningLock)
    withExtendedLifetime(home) {}
  }
}
