"""An empty Spark session with Delta and Inlet's settings, and one `select 1`: what starting alone costs."""

import sys

from pyspark.sql import SparkSession

from inlet.lake import jars, spark

builder = SparkSession.builder.master("local[2]")
settings = spark.settings(sys.argv[1]) | jars.settings()
settings[spark.JAVA_OPTIONS] += jars.java_options()
for name, value in settings.items():
    builder = builder.config(name, value)
print(builder.getOrCreate().sql("select 1").collect())
