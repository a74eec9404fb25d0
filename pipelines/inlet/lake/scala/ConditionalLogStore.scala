package inlet

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.FileAlreadyExistsException
import java.util.{Iterator => JavaIterator}

import io.delta.storage.S3SingleDriverLogStore
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path, PathIOException}

/** Commits of Delta in a store of S3, each put under the condition that there is no object of its name. Delta's own way
  * looks first and puts then, which is safe for the writers of one JVM alone.
  *
  * Source: Hadoop 3.4.2, S3A, "fs.option.create.conditional.overwrite"; Delta's LogStore, "mutual exclusion".
  */
class ConditionalLogStore(conf: Configuration) extends S3SingleDriverLogStore(conf) {
  override def write(
      path: Path,
      actions: JavaIterator[String],
      overwrite: java.lang.Boolean,
      hadoopConf: Configuration
  ): Unit =
    if (overwrite) super.write(path, actions, overwrite, hadoopConf)
    else {
      val file = path.getFileSystem(hadoopConf).createFile(path)
      val out = file.must("fs.option.create.conditional.overwrite", true).build()
      try actions.forEachRemaining(action => out.write(s"$action\n".getBytes(UTF_8)))
      catch {
        case error: Throwable =>
          out.abort() // else it would be put as far as it was written
          throw error
      }
      try out.close()
      catch { // of hadoop-aws, which is not there where this is compiled
        case error: PathIOException if error.getClass.getSimpleName == "RemoteFileChangedException" =>
          throw new FileAlreadyExistsException(path.toString)
      }
    }
}
