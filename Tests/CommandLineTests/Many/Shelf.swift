import Foundation
import Testing

@testable import keyhaul

/// A folder with backups of every form in it and below it, and with what is none.
struct Shelf {
  let world: MoveWorld

  /// In the order in which they are found: by their names' bytes, a folder's inside where the folder stands.
  static let paths = ["shelf/deep/er/two.zip", "shelf/deep/plain", "shelf/one", "shelf/three.tar.gz"]

  init() throws {
    world = try MoveWorld(named: "a shelf of backups") { world in
      try world.devices.run("mkdir -p shelf/deep/er shelf/empty")
      try world.backUp(to: "shelf/one/")
      try world.backUp(to: "shelf/three.tar.gz")
      try world.backUp("new-phone", to: "shelf/deep/er/two.zip")
      try world.succeed("backup new-phone -o shelf/deep/plain/ --no-password -q")
      try world.devices.run(
        """
        echo note > shelf/notes.txt; ln -s one shelf/again; ln -s ../shelf shelf/deep/round; mkfifo shelf/pipe.tar
        cp -R shelf/one shelf/.hidden
        """)
    }
  }

  /// The lines of `--format ndjson`, as objects.
  func rows(_ output: String) throws -> [[String: Any]] {
    try output.split(separator: "\n").map { try world.object(String($0)) }
  }

  /// The rows of a call, whatever it ended with.
  func rows(of line: String) throws -> [[String: Any]] { try rows(world.keyhaul("\(line) --format ndjson").output) }
}
