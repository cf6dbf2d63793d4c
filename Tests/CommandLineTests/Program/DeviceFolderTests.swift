import Testing

@testable import keyhaul

@Suite("The device folder")
struct DeviceFolderTests {
  @Test("The flag overrides the environment, which overrides the platform's folder")
  func order() throws {
    let environment = ["KEYHAUL_HOME": "/k", "XDG_DATA_HOME": "/x", "HOME": "/h"]
    #expect(try DeviceFolder.path(flag: "/f", environment: environment) == "/f")
    #expect(try DeviceFolder.path(flag: nil, environment: environment) == "/k")
    let path = try DeviceFolder.path(flag: nil, environment: ["HOME": "/h"])
    #if canImport(Darwin)
      #expect(path == "/h/Library/Application Support/keyhaul")
    #else
      #expect(path == "/h/.local/share/keyhaul")
      #expect(try DeviceFolder.path(flag: nil, environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"]) == "/x/keyhaul")
      #expect(
        try DeviceFolder.path(flag: nil, environment: ["XDG_DATA_HOME": "x", "HOME": "/h"])
          == "/h/.local/share/keyhaul")
    #endif
  }

  @Test("Without HOME and other settings, there is no device folder, and an empty --home is rejected")
  func none() throws {
    #expect(try DeviceFolder.path(flag: nil, environment: ["KEYHAUL_HOME": ""]) == nil)
    #expect(thrownError { _ = try DeviceFolder.path(flag: "", environment: ["HOME": "/h"]) }?.status == .usage)
  }
}
