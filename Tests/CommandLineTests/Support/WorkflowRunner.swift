import Foundation
import Testing

@testable import keyhaul

/// A GitHub workflow with one job. Only the parts that occur in the tutorial's workflow are supported.
struct Workflow {
  struct Step {
    /// The action of the step, whose inputs are in `with`.
    var uses: String?
    var with: [String: String] = [:]
    /// The lines that the step runs in a shell.
    var commands: [String] = []
  }

  struct Unreadable: Error {
    let line: String
  }

  let image: String
  private(set) var steps: [Step] = []

  /// - Throws: `Unreadable` if a line is not supported.
  init(_ text: String) throws {
    let lines = text.split(separator: "\n")
    let header = lines.prefix { Self.unindented($0) != "steps:" }
    let imageLine = header.map(Self.unindented).last { $0.hasPrefix("container: ") }
    image = imageLine.map { String($0.dropFirst("container: ".count)) } ?? ""
    for line in lines.dropFirst(header.count + 1) { try readStepLine(line) }
  }

  private static func unindented(_ line: Substring) -> Substring { line.drop { $0 == " " } }

  /// Reads a line of a step. The indentation of a step's lines is 6, 8 or 10 spaces:
  ///
  /// ```
  ///       - name: Check out
  ///         uses: actions/checkout@v4
  ///         with:
  ///           path: keyhaul
  ///       - run: |
  ///           swift build
  /// ```
  private mutating func readStepLine(_ line: Substring) throws {
    var content = Self.unindented(line)
    let indentation = line.count - content.count
    if content.hasPrefix("- ") {
      steps.append(Step())
      content = content.dropFirst(2)
    }
    guard let last = steps.indices.last else { throw Unreadable(line: String(line)) }
    if indentation == 10, steps[last].uses == nil {
      steps[last].commands.append(String(content))
      return
    }
    let parts = content.split(separator: ": ", maxSplits: 1).map(String.init)
    switch (indentation, parts.first) {
    case (6...8, "name"?), (8, "with:"?), (8, "run"?): break
    case (6...8, "uses"?): steps[last].uses = parts.last
    case (10, let key?): steps[last].with[key] = parts.last
    default: throw Unreadable(line: String(line))
    }
  }

  /// Returns the workflow without one of its steps.
  func without(_ index: Int) -> Workflow {
    var copy = self
    copy.steps.remove(at: index)
    return copy
  }
}

/// Runs a workflow's steps in order, each in a shell that finds only the tools of its image.
///
/// Steps that a test cannot perform are simulated: a checkout creates directories, `apt-get install` requires an earlier
/// `apt-get update`, and `swift build` requires the package and its libraries and provides the tested program. The shell,
/// the order, the paths and the program are real.
final class WorkflowRunner {
  /// The programs of each image that the workflow uses. `swift:6.2` is Ubuntu 24.04 with `binutils git unzip gnupg2
  /// pkg-config tzdata` and libraries, but without package lists.
  ///
  /// Source: swiftlang/swift-docker, 6.2/ubuntu/24.04/Dockerfile.
  private static let tools = ["swift:6.2": ["sh", "echo", "cat", "mkdir", "ln", "git", "pkg-config"]]

  struct UnknownImage: Error {
    let name: String
  }

  private let repository: [String: String]
  private let workspace: URL
  private let sandbox: DeviceSandbox
  private let workflow: Workflow
  private let bin: URL
  private let pathFile: URL

  /// - Parameter repository: The files of the repository that the workflow is in.
  init(_ workflow: Workflow, repository: [String: String]) throws {
    self.workflow = workflow
    self.repository = repository
    sandbox = try DeviceSandbox()
    workspace = sandbox.home.appending(path: "workspace")
    bin = sandbox.home.appending(path: "bin")
    pathFile = sandbox.home.appending(path: "github-path")
    guard let tools = Self.tools[workflow.image] else { throw UnknownImage(name: workflow.image) }
    let files = FileManager.default
    for directory in [workspace, bin] { try files.createDirectory(at: directory, withIntermediateDirectories: true) }
    try Data().write(to: pathFile)
    try link(tools)
    try writeSimulatedAptGet()
    try writeSimulatedSwift()
  }

  private func link(_ tools: [String]) throws {
    let files = FileManager.default
    for tool in tools {
      let path = ["/usr/bin", "/bin"].map { URL(filePath: $0).appending(path: tool) }.first {
        files.isExecutableFile(atPath: $0.path)
      }
      // If this machine lacks a tool, the workflow fails only if it uses the tool.
      if let path { try files.createSymbolicLink(at: bin.appending(path: tool), withDestinationURL: path) }
    }
  }

  /// Writes an `apt-get` that only records the update and the names of installed packages, as files.
  private func writeSimulatedAptGet() throws {
    let state = sandbox.home.path
    try writeScript(
      "apt-get",
      """
      case "$1 ${2-} ${3-}" in
      "update  ") : > '\(state)/lists' ;;
      "install -y --no-install-recommends")
        [ -e '\(state)/lists' ] || { echo "E: Unable to locate package $4" >&2; exit 100; }
        shift 3
        for name in "$@"; do : > '\(state)/installed-'"$name"; done ;;
      *) echo "E: $*" >&2; exit 100 ;;
      esac
      """)
  }

  /// Writes a `swift` whose build checks for the package and its libraries, and links the tested program.
  private func writeSimulatedSwift() throws {
    let state = sandbox.home.path
    try writeScript(
      "swift",
      """
      [ "$*" = 'build --package-path keyhaul -c release --product keyhaul' ] || { echo "error: $*" >&2; exit 1; }
      [ -e keyhaul/Package.swift ] || { echo "error: Could not find Package.swift" >&2; exit 1; }
      for name in libarchive-dev libsqlite3-dev libssl-dev libutf8proc-dev; do
        [ -e '\(state)/installed-'"$name" ] || { echo "error: no header of $name" >&2; exit 1; }
      done
      mkdir -p keyhaul/.build/release
      ln -s '\(BuiltProgram.directory.appending(path: "keyhaul").path)' keyhaul/.build/release/keyhaul
      """)
  }

  private func writeScript(_ name: String, _ text: String) throws {
    try Data("#!/bin/sh\nset -eu\n\(text)\n".utf8).write(to: sandbox.home.appending(path: "\(name).text"))
    // A file that is open for writing cannot be run, and a child process of another test may have inherited the open file.
    // A copy made by another process is never open here.
    let copied = try sandbox.run("cp \(name).text bin/\(name) && chmod 755 bin/\(name)")
    try #require(copied.status == 0, "\(copied)")
  }

  /// Runs the steps up to the first that fails, and returns their outcomes.
  func run() throws -> [BuiltProgram.Outcome] {
    var outcomes: [BuiltProgram.Outcome] = []
    for step in workflow.steps {
      outcomes.append(step.uses == nil ? try run(step.commands) : try checkOut(step))
      if outcomes.last?.status != 0 { break }
    }
    return outcomes
  }

  private func checkOut(_ step: Workflow.Step) throws -> BuiltProgram.Outcome {
    guard step.uses == "actions/checkout@v4" else { return try sandbox.run("echo 'no such action' >&2; exit 1") }
    let directory = step.with["path"].map { workspace.appending(path: $0) } ?? workspace
    // A checkout without an input for the repository gets the workflow's own repository. Other repositories are
    // simulated: Keyhaul's has only its package file, and any other repository is empty.
    let isKeyhaul = step.with["repository"]?.hasSuffix("/keyhaul") == true
    let contents = isKeyhaul ? ["Package.swift": ""] : step.with["repository"] == nil ? repository : [:]
    // A checkout replaces the directory.
    try? FileManager.default.removeItem(at: directory)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    for (name, text) in contents { try Data(text.utf8).write(to: directory.appending(path: name)) }
    return try sandbox.run("exit 0")
  }

  /// Runs a step like the runner: its lines in a shell that stops at the first failure, with the directories that earlier
  /// steps added to the path.
  private func run(_ commands: [String]) throws -> BuiltProgram.Outcome {
    let addedPaths = try String(contentsOf: pathFile, encoding: .utf8).split(separator: "\n").reversed().map(
      String.init)
    let path = (addedPaths + [bin.path]).joined(separator: ":")
    try Data((["set -e"] + commands).joined(separator: "\n").utf8).write(to: sandbox.home.appending(path: "step.sh"))
    return try sandbox.program.shell(
      "cd workspace && PATH='\(path)' GITHUB_PATH='\(pathFile.path)' exec /bin/sh -e ../step.sh")
  }
}
