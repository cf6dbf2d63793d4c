import Foundation
import Testing

@testable import keyhaul

/// A folder tree with backups of every format, and with other files.
struct BackupTree {
  let sandbox: PhoneSandbox

  /// The paths of the backups, in the order of a search. Names are sorted by their bytes, and a folder's contents come at
  /// the place of the folder.
  static let paths = ["shelf/deep/er/two.zip", "shelf/deep/plain", "shelf/one", "shelf/three.tar.gz"]

  init() throws {
    sandbox = try PhoneSandbox(named: "a shelf of backups") { sandbox in
      try sandbox.devices.run("mkdir -p shelf/deep/er shelf/empty")
      try sandbox.backUp(to: "shelf/one/")
      try sandbox.backUp(to: "shelf/three.tar.gz")
      try sandbox.backUp("new-phone", to: "shelf/deep/er/two.zip")
      try sandbox.succeed("backup new-phone -o shelf/deep/plain/ --no-password -q")
      try sandbox.devices.run(
        """
        echo note > shelf/notes.txt; ln -s one shelf/again; ln -s ../shelf shelf/deep/round; mkfifo shelf/pipe.tar
        cp -R shelf/one shelf/.hidden
        """)
    }
  }

  /// Returns the lines of `--format ndjson` as objects, one for each backup.
  func results(in output: String) throws -> [[String: Any]] {
    try output.split(separator: "\n").map { try sandbox.object(String($0)) }
  }

  /// Returns the results of a command with any exit code.
  func results(of line: String) throws -> [[String: Any]] {
    try results(in: sandbox.keyhaul("\(line) --format ndjson").output)
  }
}
