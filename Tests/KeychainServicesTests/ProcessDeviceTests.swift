import Basics
import Testing

@testable import KeychainServices

@Suite("The device of a process that chose none")
struct ProcessDeviceTests {
  @Test("has a passcode and one group, so that code under test finds what it finds on a phone")
  func standard() {
    let device = ProcessDevice(environment: [:], propertyList: [:])
    #expect(device.app == "app" && device.accessGroups == ["app"] && device.passcode == "0000")
  }

  @Test("is what the environment says, before what the property list does")
  func sources() {
    let list: [String: Any] = [
      "CFBundleIdentifier": "org.example.app", "keychain-access-groups": ["TEAM.shared", "TEAM.app"],
    ]
    let listed = ProcessDevice(environment: [:], propertyList: list)
    #expect(listed.app == "org.example.app" && listed.accessGroups == ["TEAM.shared", "TEAM.app"])
    let environment = [
      "KEYHAUL_DEVICE_APP": "org.example.other", "KEYHAUL_DEVICE_GROUPS": " a , ,b,", "KEYHAUL_DEVICE_PASSCODE": "",
    ]
    let named = ProcessDevice(environment: environment, propertyList: list)
    #expect(named.app == "org.example.other" && named.accessGroups == ["a", "b"] && named.passcode == "")
    let bare = ProcessDevice(environment: ["KEYHAUL_DEVICE_APP": "org.example.other"], propertyList: [:])
    #expect(bare.accessGroups == ["org.example.other"])
  }

  @Test("takes blanks and values of other kinds for nothing said")
  func odd() {
    let list: [String: Any] = ["CFBundleIdentifier": 7, "keychain-access-groups": "TEAM.app"]
    let environment = ["KEYHAUL_DEVICE_APP": " ", "KEYHAUL_DEVICE_GROUPS": ",,"]
    let device = ProcessDevice(environment: environment, propertyList: list)
    #expect(device == ProcessDevice(environment: [:], propertyList: [:]))
  }
}
