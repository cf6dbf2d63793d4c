// swift-tools-version: 6.2
import PackageDescription

/// A fuzzer has no `main`: libFuzzer brings it.
func fuzzer(_ name: String) -> Target {
  .executableTarget(
    name: name, dependencies: ["FuzzingSupport", .product(name: "KeyhaulKit", package: "keyhaul")],
    swiftSettings: [.unsafeFlags(["-parse-as-library"])])
}

/// What reads bytes that somebody else wrote, under libFuzzer. A package of its own: without a `main` it would break every
/// other build. `make fuzz` runs it; on Linux alone, where the tool chain brings libFuzzer.
let package = Package(
  name: "keyhaul-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    .target(name: "FuzzingSupport", dependencies: [.product(name: "KeyhaulKit", package: "keyhaul")]),
    fuzzer("FormatFuzzer"),
    fuzzer("ArchiveFuzzer"),
  ],
  swiftLanguageModes: [.v6]
)
