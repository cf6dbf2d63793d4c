import Basics
import Testing

@testable import KeychainServices

@Suite("Default device of the process")
struct DefaultDeviceConfigurationTests {
  @Test("The default device has a passcode and one access group, so that code runs as on a phone")
  func standard() {
    let device = DefaultDeviceConfiguration(environment: [:], propertyList: [:])
    #expect(device.app == "app" && device.accessGroups == ["app"] && device.passcode == "0000")
  }

  @Test("Environment variables override the property list for the default device")
  func sources() {
    let list: [String: Any] = [
      "CFBundleIdentifier": "org.example.app", "keychain-access-groups": ["TEAM.shared", "TEAM.app"],
    ]
    let listed = DefaultDeviceConfiguration(environment: [:], propertyList: list)
    #expect(listed.app == "org.example.app" && listed.accessGroups == ["TEAM.shared", "TEAM.app"])
    let environment = [
      "KEYHAUL_DEVICE_APP": "org.example.other", "KEYHAUL_DEVICE_GROUPS": " a , ,b,", "KEYHAUL_DEVICE_PASSCODE": "",
    ]
    let named = DefaultDeviceConfiguration(environment: environment, propertyList: list)
    #expect(named.app == "org.example.other" && named.accessGroups == ["a", "b"] && named.passcode == "")
    let bare = DefaultDeviceConfiguration(environment: ["KEYHAUL_DEVICE_APP": "org.example.other"], propertyList: [:])
    #expect(bare.accessGroups == ["org.example.other"])
  }

  @Test("Blank values and values of other types do not change the default device")
  func invalidValues() {
    let list: [String: Any] = ["CFBundleIdentifier": 7, "keychain-access-groups": "TEAM.app"]
    let environment = ["KEYHAUL_DEVICE_APP": " ", "KEYHAUL_DEVICE_GROUPS": ",,"]
    let device = DefaultDeviceConfiguration(environment: environment, propertyList: list)
    #expect(device == DefaultDeviceConfiguration(environment: [:], propertyList: [:]))
  }
}
