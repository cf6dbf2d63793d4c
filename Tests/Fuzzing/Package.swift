// swift-tools-version: 6.2
import PackageDescription

/// Shows Keyhaul's `package` declarations to the targets here. Their package's name is the name of its folder.
let inside: [SwiftSetting] = [
  .unsafeFlags([
    "-package-name",
    Context.packageDirectory.split(separator: "/").dropLast(2).last.map {
      String($0.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    } ?? "",
  ])
]

/// What reads bytes that somebody else wrote, under libFuzzer. A package of its own: without a `main` it would break every
/// other build. `make fuzz` runs it; on Linux alone, where the tool chain brings libFuzzer.
let package = Package(
  name: "keyhaul-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    // A fuzzer has no `main`: libFuzzer brings it.
    .executableTarget(
      name: "Fuzzer",
      dependencies: [
        .product(name: "KeyhaulKit", package: "keyhaul"), .product(name: "DeviceServer", package: "keyhaul"),
      ],
      packageAccess: false, swiftSettings: inside + [.unsafeFlags(["-parse-as-library"])])
  ],
  swiftLanguageModes: [.v6]
)
