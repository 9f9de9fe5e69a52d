! Fortran 2008: array sections with gaps as buffers. Where the library understands them (MPI_SUBARRAYS_SUPPORTED: MPICH),
! its binding makes a datatype, uses it once and frees it; elsewhere the compiler passes a copy.
program f08_section
  use mpi_f08
  implicit none
  include 'oracle.inc'
  integer :: rank, size, right, left, total, sum, i, turn
  integer :: line(40), table(6, 8), in(40)
  call MPI_Init()
  call say('MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call say('MPI_Comm_rank comm=MPI_COMM_WORLD rank='//num(rank))
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
  right = modulo(rank + 1, size)
  left = modulo(rank - 1, size)
  sum = 0
  line = [(1000*rank + i, i=1, 40)]
  table = reshape([(100*rank + i, i=1, 48)], [6, 8])

  ! Everyone but the first receives before it sends.
  do turn = 1, 2
     if ((rank == 0) .eqv. (turn == 1)) then
        call every_second
        call MPI_Send(line(1:19:2), 10, MPI_INTEGER, right, 7, MPI_COMM_WORLD)
        call use_of('every', 'MPI_Send', 10, 'dest='//trim(num(right))//' tag=7 comm=MPI_COMM_WORLD')
        ! Rows 2 to 5 of columns 1, 4 and 7.
        call block
        call MPI_Ssend(table(2:5, 1:7:3), 12, MPI_INTEGER, right, 8, MPI_COMM_WORLD)
        call use_of('block', 'MPI_Ssend', 12, 'dest='//trim(num(right))//' tag=8 comm=MPI_COMM_WORLD')
     else
        in = 0
        call every_second
        call MPI_Recv(in(1:19:2), 10, MPI_INTEGER, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call use_of('every', 'MPI_Recv', 10, 'source='//trim(num(left))// &
             ' tag=7 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=40')
        sum = sum + dot_product(in, [(i, i=1, 40)])
        call MPI_Recv(in, 20, MPI_INTEGER, left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call say('MPI_Recv count=20 type=MPI_INTEGER source='//num(left)// &
             ' tag=8 comm=MPI_COMM_WORLD rsource=null rtag=null bytes=48')
        sum = sum + dot_product(in, [(i, i=1, 40)])
     end if
  end do

  call MPI_Reduce(sum, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
  call say('MPI_Reduce inplace=false count=1 type=MPI_INTEGER op=MPI_SUM root=0 comm=MPI_COMM_WORLD')
  call MPI_Finalize()
  call say('MPI_Finalize')
  call orwrit(rank)
  if (rank == 0) print '(a,i0)', 'f08_section: ok ', total

contains

  ! 10 integers, 8 bytes from one to the next.
  subroutine every_second
    if (.not. MPI_SUBARRAYS_SUPPORTED) return
    call say('MPI_Type_create_hvector count=10 blocklength=1 stride=8 type=MPI_INTEGER newtype=new:every')
    call say('MPI_Type_commit committype=every')
  end subroutine every_second

  ! 3 times 4 integers in a row, 72 bytes from one to the next.
  subroutine block
    if (.not. MPI_SUBARRAYS_SUPPORTED) return
    call say('MPI_Type_contiguous count=4 type=MPI_INTEGER newtype=new:row')
    call say('MPI_Type_commit committype=row')
    call say('MPI_Type_create_hvector count=3 blocklength=1 stride=72 type=row newtype=new:block')
    call say('MPI_Type_commit committype=block')
    call say('MPI_Type_free freetype=row')
  end subroutine block

  ! One of the type that the binding made, or n integers.
  subroutine use_of(type, name, n, rest)
    character(len=*), intent(in) :: type, name, rest
    integer, intent(in) :: n
    if (MPI_SUBARRAYS_SUPPORTED) then
       call say(name//' count=1 type='//type//' '//rest)
       call say('MPI_Type_free freetype='//type)
    else
       call say(name//' count='//trim(num(n))//' type=MPI_INTEGER '//rest)
    end if
  end subroutine use_of

end program f08_section
