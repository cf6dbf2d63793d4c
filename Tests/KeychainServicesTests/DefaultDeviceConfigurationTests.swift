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

  private static let propertyList: [String: any Sendable] = [
    "CFBundleIdentifier": "org.example.app", "keychain-access-groups": ["TEAM.shared", "TEAM.app"],
  ]

  @Test("The property list sets the app and the access groups of the default device")
  func propertyList() {
    let device = DefaultDeviceConfiguration(environment: [:], propertyList: Self.propertyList)
    #expect(device.app == "org.example.app" && device.accessGroups == ["TEAM.shared", "TEAM.app"])
  }

  @Test("Environment variables override the property list for the default device")
  func environmentVariables() {
    let environment = [
      "KEYHAUL_DEVICE_APP": "org.example.other", "KEYHAUL_DEVICE_GROUPS": " a , ,b,", "KEYHAUL_DEVICE_PASSCODE": "",
    ]
    let device = DefaultDeviceConfiguration(environment: environment, propertyList: Self.propertyList)
    #expect(device.app == "org.example.other" && device.accessGroups == ["a", "b"] && device.passcode == "")
  }

  @Test("Without access groups, the app's identifier is the only group of the default device")
  func appWithoutGroups() {
    let environment = ["KEYHAUL_DEVICE_APP": "org.example.other"]
    let device = DefaultDeviceConfiguration(environment: environment, propertyList: [:])
    #expect(device.accessGroups == ["org.example.other"])
  }

  @Test("Blank values and values of other types do not change the default device")
  func invalidValues() {
    let propertyList: [String: Any] = ["CFBundleIdentifier": 7, "keychain-access-groups": "TEAM.app"]
    let environment = ["KEYHAUL_DEVICE_APP": " ", "KEYHAUL_DEVICE_GROUPS": ",,"]
    let device = DefaultDeviceConfiguration(environment: environment, propertyList: propertyList)
    #expect(device == DefaultDeviceConfiguration(environment: [:], propertyList: [:]))
  }
}
